// SPDX-License-Identifier: BSD-3-Clause
// What is recorded: filters, stops, rings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "traces/reader.h"
#include "traces/tracer.h"

namespace hcasim::traces {
namespace {

using ::testing::HasSubstr;

struct TempFile {
  TempFile() { close(mkstemp(path)); }
  ~TempFile() { unlink(path); }
  char path[32] = "/tmp/hcasim-rec-XXXXXX";
};

std::vector<Record> read(const std::string& path, std::vector<std::vector<std::uint8_t>>* blobs = nullptr) {
  Reader reader;
  std::string err;
  EXPECT_TRUE(reader.open(path, &err)) << err;
  std::vector<Record> v;
  Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) {
    v.push_back(r);
    if (blobs != nullptr) blobs->push_back(blob);
  }
  EXPECT_EQ(reader.warning(), "");
  return v;
}

TEST(RecordFilter, KeepsWhatItNames) {
  Tracer t;
  t.open_memory();
  std::string err;
  ASSERT_TRUE(t.set_filter("qp=0x4a+0x50-0x52,point=doorbell+cq_consumed,kind=error", &err)) << err;
  for (const std::uint32_t qpn : {0x49u, 0x4au, 0x50u, 0x52u, 0x53u}) {
    t.record(Point::kDoorbell, 1, qpn, 0);
    t.record(Point::kWqeParsed, 2, qpn, 0);
    t.record(Point::kTimeout, 3, t.tag(qpn), 0);
  }
  t.record(Point::kCqConsumed, 4, 0x99, 0);  // not of a QP: its number is none
  unsigned doorbells = 0, timeouts = 0, others = 0;
  for (const Record& r : t.drain()) {
    if (r.p() == Point::kDoorbell)
      doorbells++;
    else if (r.p() == Point::kTimeout)
      timeouts++;
    else
      others++;
  }
  EXPECT_EQ(doorbells, 3u);
  EXPECT_EQ(timeouts, 3u);
  EXPECT_EQ(others, 1u);
  EXPECT_EQ(t.count(Point::kTimeout), 5u) << "errors are counted, recorded or not";
  ASSERT_TRUE(t.set_filter("all", &err));
  t.record(Point::kWqeParsed, 2, 1, 0);
  EXPECT_EQ(t.drain().size(), 1u);
}

TEST(RecordFilter, DetailIsAskedFor) {
  Tracer t;
  std::string err;
  ASSERT_TRUE(t.set_filter("detail", &err));
  EXPECT_FALSE(t.detail()) << "nothing is recorded";
  t.open_memory();
  EXPECT_TRUE(t.detail());
  trace_busy(t, Unit::kCqe, 0, 100, 130);
  t.record(Point::kDoorbell, 1, 5, 0);
  auto records = t.drain();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].a1, 30u);
  ASSERT_TRUE(t.set_filter("", &err));
  EXPECT_FALSE(t.detail());
  trace_busy(t, Unit::kCqe, 0, 100, 130);
  EXPECT_TRUE(t.drain().empty());
}

TEST(RecordFilter, SaysWhatIsWrong) {
  RecordFilter f;
  std::string err;
  ASSERT_TRUE(f.parse("qp=1", &err));
  const std::pair<const char*, const char*> wrong[] = {{"qp=", "expected qp="},
                                                       {"qp", "expected qp="},
                                                       {"colour=3", "expected qp="},
                                                       {"qp=0x1000000", "0 to 0xffffff"},
                                                       {"qp=9-3", "0 to 0xffffff"},
                                                       {"qp=x", "0 to 0xffffff"},
                                                       {"point=dorbell", "no such point"},
                                                       {"kind=odd", "normal, error"}};
  for (const auto& w : wrong) {
    EXPECT_FALSE(f.parse(w.first, &err)) << w.first;
    EXPECT_THAT(err, HasSubstr(w.second)) << w.first;
    EXPECT_EQ(f.text(), "qp=1") << "a wrong filter changes nothing";
  }
}

TEST(Recorder, RestsAndGoesOn) {
  TempFile file;
  Tracer t;
  std::string err;
  ASSERT_TRUE(t.open(file.path, &err)) << err;
  t.record(Point::kDoorbell, 1, 5, 0);
  t.set_on(false);
  EXPECT_FALSE(t.enabled());
  t.record(Point::kDoorbell, 2, 5, 1);
  t.set_on(true);
  t.record(Point::kDoorbell, 3, 5, 2);
  t.close();
  t.set_on(true);
  EXPECT_FALSE(t.enabled()) << "there is no file";
  const auto records = read(file.path);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].time_ps, 3);
}

TEST(Ring, KeepsTheLastAndIsDumped) {
  TempFile file, middle;
  constexpr std::size_t kBytes = 64 * 1024;
  constexpr std::uint32_t kMany = 100000;
  Tracer t, other(1);
  std::string err;
  ASSERT_TRUE(t.open_ring(file.path, kBytes, &err)) << err;
  ASSERT_TRUE(other.open_ring(file.path, kBytes, &err)) << err;
  for (std::uint32_t i = 0; i < kMany; i++) {
    t.record(Point::kDoorbell, i * 977ll, 5, i, i * 31);
    if (i == kMany / 2) {
      ASSERT_TRUE(t.dump(middle.path, &err)) << err;
    }
  }
  const std::vector<std::uint8_t> mailbox(500, 0x5a);
  other.record_blob(Point::kCmdStart, kMany, 0, 1, 2, 3, mailbox.data(), mailbox.size());
  t.close();
  Reader early;
  EXPECT_FALSE(early.open(file.path, &err)) << "written though the other still records";
  other.close();

  for (const auto& [path, last] : {std::pair{file.path, kMany - 1}, std::pair{middle.path, kMany / 2}}) {
    std::vector<std::vector<std::uint8_t>> blobs;
    auto records = read(path, &blobs);
    if (path == file.path) {
      ASSERT_FALSE(records.empty());
      EXPECT_EQ(records.back().hca, 1);
      EXPECT_EQ(blobs.back(), mailbox);
      records.pop_back();
    }
    ASSERT_FALSE(records.empty());
    EXPECT_EQ(records.back().index, last);
    EXPECT_EQ(records.back().time_ps, last * 977ll);
    EXPECT_LT(records.size(), kBytes / 2) << "no record is less than two bytes";
    EXPECT_GT(records.size(), kBytes / 20);
    for (std::size_t i = 1; i < records.size(); i++)
      ASSERT_EQ(records[i].index, records[i - 1].index + 1) << "a gap";
  }
}

TEST(Ring, SaysWhatCannotBeWritten) {
  Tracer t;
  std::string err;
  EXPECT_FALSE(t.open_ring("/no/such/folder/x", 1 << 20, &err));
  EXPECT_THAT(err, HasSubstr("/no/such/folder/x"));
  TempFile file;
  ASSERT_TRUE(t.open_ring(file.path, 1 << 20, &err));
  EXPECT_FALSE(t.dump("/no/such/folder/x", &err));
  EXPECT_THAT(err, HasSubstr("/no/such/folder/x"));
  ASSERT_TRUE(t.open(file.path, &err));
  EXPECT_FALSE(t.dump("", &err));
  EXPECT_THAT(err, HasSubstr("no ring"));
}

}  // namespace
}  // namespace hcasim::traces
