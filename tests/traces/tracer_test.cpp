// SPDX-License-Identifier: BSD-3-Clause
#include "traces/tracer.h"

#include <gtest/gtest.h>
#include <libdeflate.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <set>

#include "traces/format.h"
#include "traces/reader.h"

namespace hcasim::traces {
namespace {

class TempFile {
 public:
  TempFile() {
    char name[] = "/tmp/hcasim-trace-test-XXXXXX";
    int fd = mkstemp(name);
    close(fd);
    path_ = name;
  }
  ~TempFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  std::string bytes() const {
    std::ifstream f(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), {}};
  }
  void write(const std::string& s) const { std::ofstream(path_, std::ios::binary | std::ios::trunc) << s; }

 private:
  std::string path_;
};

struct Read {
  bool opened = false;
  std::string error, warning;
  std::vector<Record> records;
  std::vector<std::vector<std::uint8_t>> blobs;
};

Read read_all(const std::string& path) {
  Read out;
  Reader reader;
  out.opened = reader.open(path, &out.error);
  if (!out.opened) return out;
  Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) {
    out.records.push_back(r);
    out.blobs.push_back(blob);
  }
  out.warning = reader.warning();
  return out;
}

TEST(Points, NamesAreUniqueAndExplained) {
  std::set<std::string> names;
  for (const PointInfo& p : kPointInfo) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_NE(p.help[0], '\0');
  }
}

TEST(Tracer, OffCountsErrorsOnly) {
  Tracer t;
  EXPECT_FALSE(t.enabled());
  t.record(Point::kDoorbell, 1, 2, 3);
  t.record(Point::kTimeout, 1, 2, 3);
  trace(t, Point::kTimeout, 1, 2, 3, 4, 5);
  EXPECT_EQ(t.count(Point::kDoorbell), 0u);
  EXPECT_EQ(t.count(Point::kTimeout), 2u);
  EXPECT_TRUE(t.drain().empty());
}

TEST(Tracer, Memory) {
  Tracer t(3);
  t.open_memory();
  t.record(Point::kDoorbell, 1000, 0x42, 7, 11, 12);
  const std::uint8_t bytes[] = {1, 2, 3};
  t.record_blob(Point::kCmdStart, 2000, 0, 1, 0x400, 3, bytes, 3);
  std::vector<std::vector<std::uint8_t>> blobs;
  auto r = t.drain(&blobs);
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].p(), Point::kDoorbell);
  EXPECT_EQ(r[0].hca, 3);
  EXPECT_EQ(r[0].a1, 12u);
  EXPECT_EQ(blobs[1], (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_TRUE(t.drain().empty());
  EXPECT_EQ(QpTag::qpn(t.tag(0x42)), 0x42u);
  EXPECT_EQ(QpTag::hca(t.tag(0x42), 7), 3u);
  EXPECT_EQ(QpTag::hca(0x42, 7), 7u);
}

void fill(Tracer& t, unsigned n, std::vector<Record>* want, std::vector<std::vector<std::uint8_t>>* blobs) {
  std::mt19937_64 rnd(1);
  std::vector<std::uint8_t> blob;
  for (unsigned i = 0; i < n; i++) {
    Record r;
    r.point = static_cast<std::uint16_t>(rnd() % kPoints);
    r.time_ps = rnd() % 5 == 0 ? static_cast<std::int64_t>(rnd()) : i * 1000;
    r.obj = rnd() % 7 == 0 ? static_cast<std::uint32_t>(rnd()) : 0x42;
    r.index = i;
    r.a0 = rnd() >> rnd() % 64;
    r.a1 = rnd() >> rnd() % 64;
    r.hca = static_cast<std::uint16_t>(t.hca());
    blob.assign(rnd() % 50 == 0 ? rnd() % 3000 : 0, static_cast<std::uint8_t>(i));
    r.blob_len = static_cast<std::uint32_t>(blob.size());
    t.record_blob(r.p(), r.time_ps, r.obj, r.index, r.a0, r.a1, blob.data(), blob.size());
    if (want != nullptr) want->push_back(r);
    if (blobs != nullptr) blobs->push_back(blob);
  }
}

TEST(Tracer, FileRoundTripLosesNothing) {
  TempFile f;
  std::vector<Record> want;
  std::vector<std::vector<std::uint8_t>> blobs;
  {
    Tracer t(1);
    std::string err;
    ASSERT_TRUE(t.open(f.path(), &err)) << err;
    fill(t, 200000, &want, &blobs);
  }
  Read got = read_all(f.path());
  ASSERT_TRUE(got.opened) << got.error;
  EXPECT_EQ(got.warning, "");
  ASSERT_EQ(got.records.size(), want.size());
  for (std::size_t i = 0; i < want.size(); i++) {
    ASSERT_EQ(std::memcmp(&got.records[i], &want[i], sizeof(Record)), 0) << i;
    ASSERT_EQ(got.blobs[i], blobs[i]) << i;
  }
}

// Among others, and whatever their times and steps are.
TEST(Tracer, SeriesAreTheRecordsThatTheyStandFor) {
  TempFile together, single;
  std::uint64_t counted[2];
  for (TempFile* f : {&together, &single}) {
    Tracer t(1);
    std::string err;
    ASSERT_TRUE(t.open(f->path(), &err)) << err;
    std::mt19937_64 rnd(7);
    std::int64_t time = 0;
    for (unsigned i = 0; i < 50000; ++i) {
      const Point p = rnd() % 2 ? Point::kChecked : Point::kPacketRx;
      const Subject subject(static_cast<unsigned>(rnd() % 3), static_cast<std::uint32_t>(rnd() % 4));
      const auto index = static_cast<std::uint32_t>(rnd() % 9 == 0 ? 0xfffffffe : i * 3);
      const std::uint64_t a0 = rnd() >> rnd() % 64, a1 = rnd() % 5 == 0 ? rnd() : 64;
      const auto step = static_cast<std::uint32_t>(rnd() % 3 == 0 ? rnd() : rnd() % 2);
      // Even ones, uneven ones that come again now and then, and some that are like no other.
      std::vector<std::int64_t> times(1 + rnd() % 70);
      const std::uint64_t like = rnd() % 12, unlike = rnd() % 3;
      if (like < 9) times.resize(3 + like % 3 * 14);
      for (std::size_t n = 0; n < times.size(); ++n) {
        if (unlike == 0 && rnd() % 40 == 0)
          time += static_cast<std::int64_t>(rnd() % 10'000'000'000) - 5'000'000'000;
        times[n] = time += 55'000 + static_cast<std::int64_t>(n * like % 4 * 8'000);
      }
      if (f == &together)
        t.record_series(p, times.data(), static_cast<unsigned>(times.size()), subject, index, a0, step, a1);
      for (unsigned n = 0; f == &single && n < times.size(); ++n)
        t.record(p, times[n], subject, index + n, a0 + std::uint64_t{n} * step, a1);
      if (rnd() % 4 == 0) t.record(p, time, subject, index, a0, a1);
    }
    counted[f == &single] = t.count(Point::kChecked) + t.count(Point::kPacketRx);
  }
  EXPECT_EQ(counted[0], counted[1]);
  const Read got = read_all(together.path()), want = read_all(single.path());
  EXPECT_EQ(got.warning, "");
  ASSERT_EQ(got.records.size(), want.records.size());
  EXPECT_GT(got.records.size(), 1'000'000u);
  for (std::size_t i = 0; i < want.records.size(); ++i)
    ASSERT_EQ(std::memcmp(&got.records[i], &want.records[i], sizeof(Record)), 0) << i;
  EXPECT_LT(together.bytes().size(), single.bytes().size());
}

// However many come between, up to a number; not those of another block.
TEST(Coder, SeriesWithTheStepsOfAnotherNameIt) {
  constexpr unsigned kFollow = 20;
  format::Coder coder;
  Record r;
  r.point = static_cast<std::uint16_t>(Point::kChecked);
  std::uint8_t room[format::Coder::kMost + (kFollow + 3) * format::kMaxVarint];
  const auto bytes = [&](unsigned first) {
    r.time_ps += 5'000'000;
    std::uint32_t steps[kFollow];
    for (unsigned i = 0; i < kFollow; ++i) steps[i] = first + i * i * 3'000;
    return coder.encode_series(r, 1, steps, kFollow, room) - room;
  };
  for (unsigned i = 0; i < format::kRemembered; ++i) EXPECT_GT(bytes(i), kFollow);
  for (unsigned i = 0; i < format::kRemembered; ++i) EXPECT_LT(bytes(i), kFollow) << i;
  EXPECT_GT(bytes(format::kRemembered), kFollow);
  EXPECT_GT(bytes(0), kFollow);  // the oldest, for which it came
  EXPECT_LT(bytes(2), kFollow);
  coder.reset();
  EXPECT_GT(bytes(2), kFollow);
  EXPECT_LT(coder.encode_even(r, 1, 40'000, kFollow, room) - room, kFollow);
}

std::string with_head(std::uint32_t records, const std::string& raw, const std::string& packed) {
  std::string out;
  for (const std::size_t word : {std::size_t{format::kBlockMagic}, std::size_t{records}, raw.size(),
                                 packed.size(), std::size_t{libdeflate_crc32(0, raw.data(), raw.size())}})
    format::put_u32(out, static_cast<std::uint32_t>(word));
  return out + packed;
}

const std::uint8_t* at(const std::string& bytes, std::size_t offset) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data()) + offset;
}

// A trace as it was before version 7: with raw deflate data.
std::string deflated(const std::string& file) {
  std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> c(libdeflate_alloc_compressor(6),
                                                                             libdeflate_free_compressor);
  const auto word = [&](std::size_t offset) { return format::get_u32(at(file, offset)); };
  std::size_t block = 20 + word(16);
  std::string out = file.substr(0, block);
  for (; word(block) == format::kBlockMagic; block += 20 + word(block + 12)) {
    std::string raw(word(block + 8), 0);
    EXPECT_TRUE(Unpacker().unpack(Packing::kZstd, at(file, block + 20), word(block + 12),
                                  reinterpret_cast<std::uint8_t*>(raw.data()), raw.size()));
    std::string packed(libdeflate_deflate_compress_bound(c.get(), raw.size()), 0);
    packed.resize(libdeflate_deflate_compress(c.get(), raw.data(), raw.size(), packed.data(), packed.size()));
    out += with_head(word(block + 4), raw, packed);
  }
  return out + file.substr(block);
}

TEST(Reader, ReadsFilesOfVersionsBefore) {
  TempFile f;
  {
    Tracer t;
    std::string err;
    ASSERT_TRUE(t.open(f.path(), &err)) << err;
    fill(t, 1000, nullptr, nullptr);
  }
  std::string bytes = f.bytes();
  ASSERT_EQ(bytes[8], 7);
  for (const char version : {3, 4, 5, 6, 8}) {
    std::string old = version < 7 ? deflated(bytes) : bytes;
    old[8] = version;
    f.write(old);
    const Read got = read_all(f.path());
    const bool known = version >= 4 && version <= 6;
    EXPECT_EQ(got.opened, known) << got.error;
    EXPECT_EQ(got.records.size(), known ? 1000u : 0u);
  }
}

TEST(Tracer, EqualRunsGiveEqualFiles) {
  TempFile a, b;
  for (TempFile* f : {&a, &b}) {
    Tracer t;
    std::string err;
    ASSERT_TRUE(t.open(f->path(), &err)) << err;
    fill(t, 30000, nullptr, nullptr);
    if (f == &b) usleep(60000);  // another timing of the writer
    fill(t, 30000, nullptr, nullptr);
  }
  EXPECT_EQ(a.bytes(), b.bytes());
}

TEST(Tracer, HcasShareAFile) {
  TempFile f;
  {
    Tracer t0(0), t1(1);
    std::string err;
    ASSERT_TRUE(t0.open(f.path(), &err));
    ASSERT_TRUE(t1.open(f.path(), &err));
    for (unsigned i = 0; i < 10; i++) {
      t0.record(Point::kDoorbell, i, 1, i);
      t1.record(Point::kPacketRx, i, t0.tag(1), i);
    }
    t0.close();
    t1.record(Point::kPacketRx, 100, 1, 10);
  }
  Read got = read_all(f.path());
  ASSERT_EQ(got.records.size(), 21u);
  EXPECT_EQ(got.records[0].hca, 0);
  EXPECT_EQ(got.records[20].hca, 1);
  EXPECT_EQ(got.warning, "");
}

// Such blocks have more records than bytes.
TEST(Tracer, RecordsOfNothingButSeriesAreRead) {
  constexpr unsigned kSeries = 16, kAll = 3000;
  TempFile f;
  {
    Tracer t(0);
    std::string err;
    ASSERT_TRUE(t.open(f.path(), &err)) << err;
    std::int64_t times[kSeries];
    for (unsigned i = 0; i < kAll; ++i) {
      for (unsigned n = 0; n < kSeries; ++n) times[n] = std::int64_t{i} * 1'000'000 + n * 5000;
      t.record_series(Point::kChecked, times, kSeries, 0x80, i * kSeries, 7, 0, 9);
    }
  }
  const Read got = read_all(f.path());
  EXPECT_EQ(got.warning, "");
  ASSERT_EQ(got.records.size(), kAll * kSeries);
  EXPECT_EQ(got.records.back().time_ps, (kAll - 1) * 1'000'000LL + (kSeries - 1) * 5000);
}

TEST(Tracer, EachOfTheMostHcasIsNamed) {
  TempFile f;
  const std::vector<unsigned> numbers = {0, 1, 127, 128, 253, 254, 255, 256, 1023, kMostHcas - 1};
  constexpr std::uint32_t kQpn = (1u << 18) - 1;
  {
    std::vector<std::unique_ptr<Tracer>> tracers;
    std::string err;
    for (const unsigned n : numbers) {
      tracers.push_back(std::make_unique<Tracer>(n));
      ASSERT_TRUE(tracers.back()->open(f.path(), &err)) << err;
    }
    for (std::size_t i = 0; i < numbers.size(); ++i)
      tracers[i]->record(Point::kPacketRx, 1, tracers[(i + 1) % numbers.size()]->tag(kQpn), 1);
  }
  const Read got = read_all(f.path());
  ASSERT_EQ(got.records.size(), numbers.size()) << got.warning;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(got.records[i].hca, numbers[i]);
    EXPECT_EQ(QpTag::hca(got.records[i].obj, 5), numbers[(i + 1) % numbers.size()]);
    EXPECT_EQ(QpTag::qpn(got.records[i].obj), kQpn);
  }
}

TEST(Tracer, ARecordNamesItsFunction) {
  TempFile f, without;
  for (TempFile* file : {&f, &without}) {
    Tracer t(2);
    std::string err;
    ASSERT_TRUE(t.open(file->path(), &err));
    const unsigned last = file == &f ? 4095 : 0;
    t.record(Point::kDoorbell, 1, 2, 3, 4, 5);
    t.record(Point::kDoorbell, 1, {last, 2}, 3, 4, 5);
    const std::vector<std::uint8_t> large(kMaxBlob + 1, 7);
    t.record_blob(Point::kCmdStart, 1, {last, 2}, 3, 4, 5, large.data(), large.size());
    t.record(Point::kDoorbell, 1, 2, 3, 4, 5);
  }
  Read got = read_all(f.path());
  ASSERT_EQ(got.records.size(), 4u) << got.warning;
  EXPECT_EQ(got.records[0].function, 0u);
  EXPECT_EQ(got.records[1].function, 4095u);
  EXPECT_EQ(got.records[2].function, 4095u);
  EXPECT_EQ(got.records[2].flags, Record::kTruncated);
  EXPECT_EQ(got.records[2].blob_len, kMaxBlob);
  EXPECT_EQ(got.records[3].function, 0u);
  EXPECT_LT(without.bytes().size(), f.bytes().size()) << "function 0 costs nothing";
}

TEST(Tracer, LargeBlobsAreCut) {
  TempFile f;
  {
    Tracer t;
    std::string err;
    ASSERT_TRUE(t.open(f.path(), &err));
    std::vector<std::uint8_t> big(kMaxBlob + 1000, 7);
    for (int i = 0; i < 40; i++)
      t.record_blob(Point::kCmdStart, 0, 0, 0, 0, big.size(), big.data(), big.size());
  }
  Read got = read_all(f.path());
  ASSERT_EQ(got.records.size(), 40u);
  EXPECT_EQ(got.records[39].blob_len, kMaxBlob);
  EXPECT_EQ(got.records[39].flags, Record::kTruncated);
}

TEST(Tracer, ReopenStartsAnew) {
  TempFile f;
  std::string err;
  for (int run = 0; run < 2; run++) {
    Tracer t;
    ASSERT_TRUE(t.open(f.path(), &err));
    t.record(Point::kDoorbell, run, 0, 0);
  }
  Read got = read_all(f.path());
  ASSERT_EQ(got.records.size(), 1u);
  EXPECT_EQ(got.records[0].time_ps, 1);
}

TEST(Tracer, FlushMakesRecordsReadable) {
  TempFile f;
  Tracer t;
  std::string err;
  ASSERT_TRUE(t.open(f.path(), &err));
  t.record(Point::kDoorbell, 5, 0, 0);
  t.flush();
  Read got = read_all(f.path());
  EXPECT_EQ(got.records.size(), 1u);
  EXPECT_NE(got.warning, "");
}

TEST(Tracer, BadPath) {
  Tracer t;
  std::string err;
  EXPECT_FALSE(t.open("/no/such/dir/x", &err));
  EXPECT_NE(err.find("/no/such/dir/x"), std::string::npos);
  EXPECT_FALSE(t.enabled());
}

TEST(Reader, RefusesWhatIsNoTrace) {
  TempFile f;
  for (const std::string& s : {std::string(), std::string("hello"), std::string(100, 'x'),
                               std::string("HCASIMTR\1\0\0\0\4\3\2\1\377\377\377\377", 20)}) {
    f.write(s);
    Read got = read_all(f.path());
    EXPECT_FALSE(got.opened);
    EXPECT_NE(got.error, "");
  }
  EXPECT_NE(read_all("/no/such").error, "");
}

std::string block(std::uint32_t records, const std::string& raw) {
  std::vector<std::uint8_t> packed;
  Packer(Packer::Of::kRecords).pack(at(raw, 0), raw.size(), packed);
  return with_head(records, raw, std::string(packed.begin(), packed.end()));
}

// Blocks of few bytes that would take much memory.
TEST(Reader, RefusesBlocksThatNoSinkWrites) {
  TempFile f;
  {
    Tracer t;
    std::string err;
    ASSERT_TRUE(t.open(f.path(), &err));
  }
  std::string head = f.bytes();
  head.resize(20 + format::get_u32(reinterpret_cast<const std::uint8_t*>(head.data()) + 16));
  constexpr unsigned kFollow = format::kMostSeries - 1;
  const auto of_series = [&](std::uint32_t series) {
    std::string raw;
    format::Coder coder;
    Record r;
    r.point = static_cast<std::uint16_t>(Point::kChecked);
    std::uint8_t room[format::Coder::kMost + (kFollow + 3) * format::kMaxVarint];
    for (std::uint32_t i = 0; i < series; ++i)
      raw.append(reinterpret_cast<char*>(room),
                 static_cast<std::size_t>(coder.encode_even(r, 0, 0, kFollow, room) - room));
    return block(series * format::kMostSeries, raw);
  };
  constexpr std::uint32_t kMost = format::kMaxRecords / format::kMostSeries;
  f.write(head + of_series(kMost));
  Read got = read_all(f.path());
  EXPECT_EQ(got.records.size(), format::kMaxRecords);
  EXPECT_EQ(got.warning.find("impossible sizes"), std::string::npos) << got.warning;
  f.write(head + of_series(kMost + 1));
  got = read_all(f.path());
  EXPECT_EQ(got.records.size(), 0u);
  EXPECT_NE(got.warning.find("impossible sizes"), std::string::npos) << got.warning;
  std::string sparse = head + of_series(1);
  constexpr std::uint32_t kStored = 16u << 20;
  for (unsigned i = 0; i < 4; ++i) sparse[head.size() + 12 + i] = static_cast<char>(kStored >> 8 * i & 0xff);
  f.write(sparse);
  ASSERT_EQ(truncate(f.path().c_str(), 2 * off_t{kStored}), 0);
  got = read_all(f.path());
  EXPECT_NE(got.warning.find("impossible sizes"), std::string::npos) << got.warning;
}

TEST(Reader, SurvivesDamage) {
  TempFile f;
  {
    Tracer t;
    std::string err;
    ASSERT_TRUE(t.open(f.path(), &err));
    fill(t, 10000, nullptr, nullptr);
  }
  const std::string good = f.bytes();
  std::mt19937 rnd(2);
  for (int i = 0; i < 300; i++) {
    std::string bad = good;
    if (i % 3 == 0) bad.resize(rnd() % bad.size());
    for (unsigned n = 0; n < (i % 3 == 0 ? 0u : 1u + rnd() % 4) && !bad.empty(); n++)
      bad[rnd() % bad.size()] = static_cast<char>(rnd());
    f.write(bad);
    Read got = read_all(f.path());
    EXPECT_LE(got.records.size(), 10000u);
    EXPECT_TRUE(got.opened || !got.error.empty());
    EXPECT_TRUE(i % 3 != 0 || !got.opened || !got.warning.empty());
  }
}

}  // namespace
}  // namespace hcasim::traces
