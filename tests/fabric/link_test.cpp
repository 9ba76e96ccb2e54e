// SPDX-License-Identifier: GPL-2.0-or-later
// Two cards on a link in ns-3 do what they do on a cable over which each packet goes by itself, to the ps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "traces/reader.h"

namespace {

using hcasim::traces::Point;

class LinkInNs3 : public ::testing::Test {
 protected:
  LinkInNs3() {
    folder_ = (std::filesystem::temp_directory_path() / "hcasim-link.XXXXXX").string();
    if (!mkdtemp(folder_.data())) folder_.clear();
  }
  ~LinkInNs3() override { std::filesystem::remove_all(folder_); }
  std::string run(const std::string& how, const std::string& options = "") const {
    const std::string command = std::string(LINK_RUN) + " " + how + " " + folder_ + "/" + how + " " + options;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string out;
    std::array<char, 512> part;
    while (pipe && std::fgets(part.data(), part.size(), pipe.get())) out += part.data();
    return out;
  }
  // What has come in and what has become of it, with times in ps; of the part that is compared.
  using Row = std::tuple<std::int64_t, unsigned, std::uint64_t, std::uint64_t>;
  std::vector<Row> rows(const std::string& how, const std::string& end) const {
    constexpr std::int64_t kFrom = 50'000'000'000;
    std::vector<Row> list;
    hcasim::traces::Reader reader;
    std::string err;
    EXPECT_TRUE(reader.open(folder_ + "/" + how + "." + end, &err)) << err;
    hcasim::traces::Record r;
    std::vector<std::uint8_t> blob;
    while (reader.next(r, blob)) {
      const auto p = static_cast<Point>(r.point);
      const bool counts = p == Point::kPacketIn || p == Point::kPacketOut || p == Point::kCqeWritten ||
                          p == Point::kScattered || p == Point::kAckRx || p == Point::kWqeDone;
      const std::int64_t t = r.time_ps;
      // A packet that has come as bytes does not say whose it was, nor which WQE's.
      if (counts && t >= kFrom)
        list.emplace_back(t, r.point, p == Point::kPacketIn ? 0 : r.a0, p == Point::kPacketIn ? 0 : r.a1);
    }
    return list;
  }
  std::string folder_;
};

TEST_F(LinkInNs3, EqualsACableToThePicosecond) {
  std::string cable = run("cable"), ns3 = run("ns3");
  ASSERT_GT(cable.size(), 500u);
  EXPECT_EQ(cable.substr(0, cable.find("digest")), ns3.substr(0, ns3.find("digest")));
  for (const char* end : {"a", "b"}) {
    const auto one = rows("cable", end), other = rows("ns3", end);
    ASSERT_GT(one.size(), 1000u);
    ASSERT_EQ(one.size(), other.size());
    std::map<unsigned, unsigned> seen;
    for (std::size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i], other[i]) << end << " " << i;
      ++seen[std::get<1>(one[i])];
    }
    EXPECT_GT(seen[static_cast<unsigned>(Point::kPacketIn)], 300u);
    EXPECT_GT(seen[static_cast<unsigned>(Point::kPacketOut)], 300u);
  }
}

// (Over a cable it does: packets then come by themselves, and otherwise in runs.)
TEST_F(LinkInNs3, ATraceInDetailChangesNothing) {
  const std::string with = run("ns3"), without = run("ns3", "trace_filter=all");
  ASSERT_GT(with.size(), 500u);
  EXPECT_EQ(with, without);
}

TEST_F(LinkInNs3, EachRunIsTheSame) {
  const std::string one = run("ns3"), other = run("ns3");
  ASSERT_GT(one.size(), 500u);
  EXPECT_EQ(one, other);
  EXPECT_NE(one.find("digest"), std::string::npos);
}

// Times are part of a recording.
TEST_F(LinkInNs3, IsReplayedFromItsRecording) {
  const std::string recording = folder_ + "/recording";
  ASSERT_GT(run("ns3", "record=" + recording).size(), 500u);
  EXPECT_EQ(std::system((std::string(REPLAY) + " " + recording).c_str()), 0);
}

}  // namespace
