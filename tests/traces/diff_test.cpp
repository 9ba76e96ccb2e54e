// SPDX-License-Identifier: BSD-3-Clause
#include "traces/diff.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>

#include "prm/prm.h"
#include "traces/tracer.h"

namespace hcasim::traces {
namespace {

/// A trace file with what `fill` records.
class File {
 public:
  explicit File(const std::function<void(Tracer&)>& fill) {
    char name[] = "/tmp/hcasim-diff-test-XXXXXX";
    close(mkstemp(name));
    path_ = name;
    Tracer t;
    std::string err;
    EXPECT_TRUE(t.open(path_, &err)) << err;
    fill(t);
    t.close();
  }
  ~File() { unlink(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Compared {
  DiffResult result{};
  std::string text;
};

Compared compare(const File& x, const File& y, unsigned context = 2) {
  Compared c;
  Reader a, b;
  std::string err;
  EXPECT_TRUE(a.open(x.path(), &err) && b.open(y.path(), &err)) << err;
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* f = open_memstream(&text, &size);
  DiffOptions o;
  o.context = context;
  c.result = diff(a, b, o, f);
  std::fclose(f);
  c.text.assign(text, size);
  std::free(text);
  return c;
}

/// 10,000 records, more than a block; the one of that number is another one.
void doorbells(Tracer& t, std::uint32_t other = UINT32_MAX, std::uint32_t count = 10000) {
  for (std::uint32_t i = 0; i < count; ++i)
    t.record(Point::kDoorbell, i * 1000, 0x42, i, i == other ? 99 : 1);
}

std::size_t lines_with(const std::string& text, const std::string& start) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text.compare(at, start.size(), start) == 0) ++n;
  }
  return n;
}

TEST(Diff, EqualTracesAreTheSame) {
  const File a([](Tracer&t) { doorbells(t); }), b([](Tracer&t) { doorbells(t); });
  const Compared c = compare(a, b);
  EXPECT_EQ(c.result, DiffResult::kSame);
  EXPECT_EQ(c.text, "the same: 10000 records\n");
}

TEST(Diff, FirstRecordThatDiffersWithWhatIsAroundIt) {
  const File a([](Tracer&t) { doorbells(t); }), b([](Tracer&t) { doorbells(t, 7001); });
  const Compared c = compare(a, b);
  EXPECT_EQ(c.result, DiffResult::kPart);
  EXPECT_NE(c.text.find("they part at record 7001, in a0\n"), std::string::npos) << c.text;
  EXPECT_EQ(lines_with(c.text, "  "), 2u) << c.text;
  EXPECT_EQ(lines_with(c.text, "A "), 3u) << c.text;
  EXPECT_EQ(lines_with(c.text, "B "), 3u) << c.text;
  EXPECT_NE(c.text.find("index 7001 a0 0x63"), std::string::npos) << c.text;
}

TEST(Diff, EachFieldCounts) {
  const auto one = [](Point p, std::int64_t time, std::uint32_t obj, std::uint32_t index, std::uint64_t a0,
                      std::uint64_t a1) { return [=](Tracer& t) { t.record(p, time, obj, index, a0, a1); }; };
  const File base(one(Point::kDoorbell, 5, 1, 2, 3, 4));
  const struct {
    std::function<void(Tracer&)> fill;
    const char* what;
  } others[] = {
      {one(Point::kScheduled, 5, 1, 2, 3, 4), "in point\n"},
      {one(Point::kDoorbell, 6, 1, 2, 3, 4), "in time\n"},
      {one(Point::kDoorbell, 5, 9, 2, 3, 4), "in obj\n"},
      {one(Point::kDoorbell, 5, 1, 9, 3, 4), "in index\n"},
      {one(Point::kDoorbell, 5, 1, 2, 9, 4), "in a0\n"},
      {one(Point::kDoorbell, 5, 1, 2, 3, 9), "in a1\n"},
  };
  for (const auto& other : others) {
    const Compared c = compare(base, File(other.fill));
    EXPECT_EQ(c.result, DiffResult::kPart);
    EXPECT_NE(c.text.find(other.what), std::string::npos) << c.text;
  }
}

TEST(Diff, OneThatEndsBeforeTheOther) {
  const File a([](Tracer&t) { doorbells(t); }), b([](Tracer&t) { doorbells(t, UINT32_MAX, 9000); });
  const Compared c = compare(a, b);
  EXPECT_EQ(c.result, DiffResult::kPart);
  EXPECT_NE(c.text.find("B ends after 9000 records"), std::string::npos) << c.text;
  EXPECT_EQ(lines_with(c.text, "A "), 3u) << c.text;
  EXPECT_EQ(lines_with(c.text, "B  "), 0u) << c.text;
}

TEST(Diff, CommandsAreNamedWithTheFieldsOfTheirMailboxes) {
  const auto create = [](unsigned log_size) {
    return [=](Tracer& t) {
      std::array<std::uint8_t, 128> in{}, out{};
      prm::set<prm::create_cq_in::opcode>(in.data(), prm::op::CREATE_CQ);
      prm::set<prm::create_cq_in::cq_context::log_cq_size>(in.data(), 5);
      t.record_blob(Point::kCmdStart, 1000, 3, 7, prm::op::CREATE_CQ, 0, in.data(), in.size());
      prm::set<prm::create_cq_out::cqn>(out.data(), log_size);
      t.record_blob(Point::kCmdDone, 2000, 3, 7, prm::op::CREATE_CQ, 0, out.data(), 16);
    };
  };
  const Compared c = compare(File(create(0x81)), File(create(0x82)));
  EXPECT_EQ(c.result, DiffResult::kPart);
  EXPECT_NE(c.text.find("its bytes from 0xb on (81, 82)"), std::string::npos) << c.text;
  EXPECT_NE(c.text.find("CREATE_CQ"), std::string::npos) << c.text;
  EXPECT_NE(c.text.find("log_cq_size=0x5"), std::string::npos) << c.text;
  EXPECT_NE(c.text.find("cqn=0x81"), std::string::npos) << c.text;
  EXPECT_NE(c.text.find("cqn=0x82"), std::string::npos) << c.text;
}

// Two functions use the same slot at a time.
TEST(Diff, CommandsOfFunctionsAreApart) {
  const auto both = [](unsigned cqn) {
    return [=](Tracer& t) {
      std::array<std::uint8_t, 16> in{}, out{};
      t.record_blob(Point::kCmdStart, 1000, {0u, 3u}, 7, prm::op::CREATE_CQ, 0, in.data(), in.size());
      t.record_blob(Point::kCmdStart, 1000, {2u, 3u}, 7, prm::op::QUERY_ISSI, 0, in.data(), in.size());
      prm::set<prm::create_cq_out::cqn>(out.data(), cqn);
      t.record_blob(Point::kCmdDone, 2000, {0u, 3u}, 7, prm::op::CREATE_CQ, 0, out.data(), out.size());
    };
  };
  const Compared c = compare(File(both(0x81)), File(both(0x82)), 0);
  EXPECT_NE(c.text.find("CREATE_CQ: cqn=0x81"), std::string::npos) << c.text;
  EXPECT_EQ(c.text.find("QUERY_ISSI"), std::string::npos) << c.text;
}

}  // namespace
}  // namespace hcasim::traces
