// SPDX-License-Identifier: BSD-3-Clause
// Files that `hcasim trace` and `hcasim replay` are given. The first byte says what follows: 0 a trace, 1 a
// recording, each as a file; 2, 3 what stands in the blocks of one, which is made here, as what is compressed
// and summed up keeps a fuzzer out. (2: first the number of records, two bytes, low one first.) Of a trace
// all is read that its page has.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "card/replay/recording.h"
#include "door.h"
#include "traces/page.h"
#include "traces/path.h"
#include "traces/reader.h"
#include "traces/report.h"
#include "traces/sink.h"
#include "traces/story.h"

namespace hcasim::fuzz {
namespace {

using namespace hcasim::traces;

// A file of memory with a name.
class File {
 public:
  File() : fd_(::memfd_create("door", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {}
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }
  void fill(const void* bytes, std::size_t len) {
    if (::write(fd_, bytes, len) != static_cast<ssize_t>(len)) finding("no memory for the file");
  }

 private:
  int fd_;
  std::string path_;
};

void read_trace(const std::string& path) {
  Reader reader;
  std::string err;
  if (!reader.open(path, &err)) return;
  Analysis analysis;
  Facts facts;
  Paths paths;
  Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) {
    static_cast<void>(describe(r, reader.file_point_name()));
    static_cast<void>(in_words(r));
    analysis.add(r, blob);
    facts.add(r, blob);
    paths.add(r, blob);
  }
  analysis.finish();
  paths.finish();
  for (const FramePath& p : paths.all()) static_cast<void>(path_id(p) + path_text(p));
  PageInput in;
  in.path = path;
  in.warning = reader.warning();
  in.analysis = &analysis;
  in.facts = &facts;
  nlohmann::ordered_json data;
  if (page_data(in, PageLimits(), &data, &err)) static_cast<void>(embeddable(data));
  for (const CommandRow& c : analysis.commands()) {
    static_cast<void>(input_fields(c));
    static_cast<void>(output_fields(c));
  }
}

void read_recording(const std::string& path) {
  api::RecordingReader reader;
  std::string err;
  if (!reader.open(path, err)) return;
  api::Noted noted;
  std::size_t bytes = 0;
  while (reader.next(noted)) bytes += noted.text().size();
  bytes += reader.warning().size();
  if (bytes == 0) finding("a recording ends without a word");
}

std::string contents(const std::string& path) {
  std::string out;
  std::FILE* const f = std::fopen(path.c_str(), "rbe");
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, f)) > 0;) out.append(part, n);
  std::fclose(f);
  return out;
}

// The life of a WQE, a command, an error, as bytes of a block, and how many records.
std::string sample(std::uint32_t* records) {
  format::Coder coder;
  std::vector<std::uint8_t> bytes;
  *records = 0;
  const auto put = [&](Point point, std::uint32_t obj, std::uint32_t index, std::uint64_t a0,
                       std::uint64_t a1, std::vector<std::uint8_t> blob = {}) {
    Record r{};
    r.time_ps = 1000 * ++*records;
    r.point = static_cast<std::uint16_t>(point);
    r.obj = obj;
    r.index = index;
    r.a0 = a0;
    r.a1 = a1;
    r.blob_len = static_cast<std::uint32_t>(blob.size());
    std::vector<std::uint8_t> room(format::Coder::kMost + blob.size() + format::kMaxVarint);
    room.resize(static_cast<std::size_t>(coder.encode(r, blob.data(), room.data()) - room.data()));
    bytes.insert(bytes.end(), room.begin(), room.end());
  };
  for (std::uint32_t round = 0; round < 2; ++round)
    for (std::size_t p = 0; p < kPoints; ++p)
      put(static_cast<Point>(p), 0x40, round, p * 3 % 17, round,
          std::vector<std::uint8_t>(p % 3 == 0 ? 64 : 0, 1));
  for (const std::uint32_t step : {0u, 1u, 70'000u}) {
    Record r{};
    r.time_ps = 5000 * ++*records;
    r.point = static_cast<std::uint16_t>(Point::kChecked);
    const std::uint32_t steps[] = {55'000, 55'000, 60'000};
    std::uint8_t room[format::Coder::kMost + 6 * format::kMaxVarint];
    // The second and the third have the steps of the first.
    bytes.insert(bytes.end(), room, coder.encode_series(r, step, steps, 3, room));
    *records += 3;
    r.time_ps = 5000 * ++*records;
    bytes.insert(bytes.end(), room, coder.encode_even(r, step, 55'000, 4, room));
    *records += 4;
  }
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void open_door(const std::uint8_t* bytes, std::size_t len) {
  if (len == 0) return;
  const unsigned what = bytes[0];
  ++bytes;
  --len;
  File file;
  if (what < 2) {
    file.fill(bytes, len);
  } else if (what == 2) {
    if (len < 2) return;
    FileWriter writer(std::fopen(file.path().c_str(), "wbe"), file.path());
    writer.write_block(bytes + 2, std::min<std::size_t>(len - 2, format::kMaxRaw), bytes[0] | bytes[1] << 8u);
    writer.finish();
  } else {
    std::string err;
    const auto writer = StreamWriter::create(file.path(), api::kRecordingMagic, api::kRecordingVersion, &err);
    if (!writer) finding(err);
    writer->put(bytes, len);
    writer->finish();
  }
  if (what % 2 == 0)
    read_trace(file.path());
  else
    read_recording(file.path());
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  std::uint32_t records = 0;
  const std::string raw = sample(&records);
  all.push_back(std::string{2, static_cast<char>(records), static_cast<char>(records >> 8)} + raw);
  {
    File file;
    FileWriter writer(std::fopen(file.path().c_str(), "wbe"), file.path());
    writer.write_block(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size(), records);
    writer.finish();
    all.push_back(std::string(1, '\0') + contents(file.path()));
  }
  // hello, create, start, an advance and its return, a read by DMA, the end.
  std::string events;
  const auto add = [&](api::Event e, const std::string& fields) {
    events += std::string{static_cast<char>(e)} + fields;
  };
  add(api::Event::kHello, std::string{8});
  add(api::Event::kReturn, std::string(1, '\0'));
  add(api::Event::kCreate, std::string{1, 8} + "link=eth" + std::string(2, '\0'));
  add(api::Event::kReturn, std::string{1});
  add(api::Event::kStart, std::string(1, '\0'));
  add(api::Event::kAdvance, std::string{100, 10});
  add(api::Event::kDmaRead, std::string{0, 0x40, 4, 1, 4} + "abcd");
  add(api::Event::kReturn, std::string{5});
  add(api::Event::kWireRx, std::string{0, 60} + std::string(60, 'f'));
  add(api::Event::kSaved, std::string{4, 3} + "abc");
  add(api::Event::kEnd, std::string{8});
  all.push_back(std::string{3} + events);
  {
    File file;
    std::string err;
    const auto writer = StreamWriter::create(file.path(), api::kRecordingMagic, api::kRecordingVersion, &err);
    writer->put(events.data(), events.size());
    writer->finish();
    all.push_back(std::string{1} + contents(file.path()));
  }
  return all;
}

}  // namespace hcasim::fuzz
