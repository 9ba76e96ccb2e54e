// SPDX-License-Identifier: BSD-3-Clause
#include "traces/stream_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>

namespace hcasim::traces {
namespace {

constexpr char kMagic[] = "STREAMTS";

class StreamFile : public ::testing::Test {
 protected:
  StreamFile() {
    path_ = std::filesystem::temp_directory_path() / "hcasim-stream.XXXXXX";
    close(mkstemp(path_.data()));
  }
  ~StreamFile() override { unlink(path_.c_str()); }

  // Several blocks, put in pieces of all sizes.
  std::string write(bool to_its_end) {
    std::mt19937 random(1);
    std::string all, err;
    writer_ = StreamWriter::create(path_, kMagic, 3, &err);
    EXPECT_NE(writer_, nullptr) << err;
    while (all.size() < 1'500'000) {
      std::string piece(random() % 3 ? random() % 100 : random() % 400'000, 'x');
      for (char& c : piece) c = static_cast<char>(random() % 20);
      writer_->put(piece.data(), piece.size());
      all += piece;
    }
    if (to_its_end) {
      EXPECT_TRUE(writer_->finish());
      writer_->put("more", 4);
    }
    return all;
  }
  // The stream as far as it goes, then reader_.warning().
  std::string read() {
    reader_.emplace();
    std::string out, err;
    EXPECT_TRUE(reader_->open(path_, kMagic, 3, &err)) << err;
    std::uint8_t byte = 0;
    while (reader_->read(byte)) out += static_cast<char>(byte);
    EXPECT_FALSE(reader_->read(byte)) << "the end stays the end";
    return out;
  }
  std::string path_;
  std::unique_ptr<StreamWriter> writer_;
  std::optional<StreamReader> reader_;
};

TEST_F(StreamFile, IsReadAsItWasWritten) {
  const std::string all = write(true);
  EXPECT_TRUE(read() == all);
  EXPECT_EQ(reader_->warning(), "");
  EXPECT_LT(std::filesystem::file_size(path_), all.size() * 3 / 4) << "packed";
  reader_.emplace();
  std::string err, whole(all.size(), '\0');
  ASSERT_TRUE(reader_->open(path_, kMagic, 3, &err));
  EXPECT_TRUE(reader_->read(whole.data(), whole.size()));
  EXPECT_TRUE(whole == all);
  EXPECT_FALSE(reader_->read(whole.data(), 1));
}

TEST_F(StreamFile, IsWholeThoughTheWriterHasNotFinished) {
  const std::string all = write(false);
  EXPECT_TRUE(read() == all);
  EXPECT_EQ(reader_->warning(), "the process that wrote it ended without a word");
}

TEST_F(StreamFile, CutOffItIsReadSoFar) {
  const std::string all = write(true);
  const auto size = std::filesystem::file_size(path_);
  for (const auto len : {size - 1, size - 16, size - 17, size / 2, std::uintmax_t{20}, std::uintmax_t{16}}) {
    std::filesystem::resize_file(path_, len);
    const std::string some = read();
    EXPECT_TRUE(all.compare(0, some.size(), some) == 0) << len;
    EXPECT_NE(reader_->warning(), "") << len;
    if (len + 16 >= size) {
      EXPECT_EQ(some.size(), all.size()) << len;
    }
  }
}

TEST_F(StreamFile, DamageIsFound) {
  const std::string all = write(true);
  std::mt19937 random(2);
  const auto size = std::filesystem::file_size(path_);
  for (unsigned i = 0; i < 50; ++i) {
    const auto at = static_cast<std::streamoff>(16 + random() % (size - 16));
    std::fstream f(path_, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const char was = static_cast<char>(f.get());
    const char spoiled = static_cast<char>(was ^ (1 + random() % 255));
    f.seekp(at);
    f.put(spoiled);
    f.flush();
    const std::string some = read();
    EXPECT_TRUE(all.compare(0, some.size(), some) == 0) << at;
    if (static_cast<std::uintmax_t>(at) + 12 < size) {
      EXPECT_NE(reader_->warning(), "") << at;
    }
    f.seekp(at);
    f.put(was);
  }
  EXPECT_TRUE(read() == all);
}

TEST_F(StreamFile, OthersAreRefused) {
  write(true);
  std::string err;
  EXPECT_FALSE(StreamReader().open(path_, kMagic, 4, &err));
  EXPECT_EQ(err, path_ + ": format version 3; this program reads version 4");
  EXPECT_FALSE(StreamReader().open(path_, "ANOTHER.", 3, &err));
  EXPECT_EQ(err, path_ + ": does not begin with ANOTHER.");
  EXPECT_FALSE(StreamReader().open("/no/such/file", kMagic, 3, &err));
  EXPECT_EQ(StreamWriter::create("/no/such/folder/file", kMagic, 3, &err), nullptr);
}

// The disk is full: it is said, nothing breaks, and what was written is there.
TEST_F(StreamFile, EndsWhereThereIsNoRoom) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit was{};
  ::getrlimit(RLIMIT_FSIZE, &was);
  rlimit small = was;
  small.rlim_cur = 600'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  ::testing::internal::CaptureStderr();
  const std::string all = write(false);
  const bool finished = writer_->finish();
  const std::string said = ::testing::internal::GetCapturedStderr();
  ::setrlimit(RLIMIT_FSIZE, &was);
  EXPECT_FALSE(finished);
  EXPECT_NE(said.find("the file ends here"), std::string::npos) << said;
  const std::string some = read();
  EXPECT_GT(some.size(), 200'000u);
  EXPECT_TRUE(all.compare(0, some.size(), some) == 0);
  EXPECT_NE(reader_->warning(), "");
}

}  // namespace
}  // namespace hcasim::traces
