// SPDX-License-Identifier: BSD-3-Clause
#include "traces/reader.h"

#include <libdeflate.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "traces/format.h"

namespace hcasim::traces {

Reader::~Reader() {
  if (file_ != nullptr) std::fclose(file_);
}

bool Reader::read(void* p, std::size_t n) { return std::fread(p, 1, n, file_) == n; }

void Reader::warn(const std::string& what) {
  if (warning_.empty()) warning_ = what;
}

bool Reader::open(const std::string& path, std::string* err) {
  auto fail = [&](const std::string& what) {
    *err = path + ": " + what;
    return false;
  };
  file_ = std::fopen(path.c_str(), "rbe");
  if (file_ == nullptr) return fail(std::strerror(errno));
  if (std::fseek(file_, 0, SEEK_END) != 0 || (size_ = std::ftell(file_)) < 0 ||
      std::fseek(file_, 0, SEEK_SET) != 0)
    return fail("not a regular file");
  std::uint8_t head[20];
  if (!read(head, sizeof head) || std::memcmp(head, format::kMagic, sizeof format::kMagic) != 0)
    return fail("not an hcasim trace file (it does not begin with HCASIMTR)");
  const std::uint32_t version = format::get_u32(head + 8), length = format::get_u32(head + 16);
  if (format::get_u32(head + 12) != format::kEndianCheck) return fail("written with another byte order");
  if (version < format::kFirstRead || version > format::kVersion)
    return fail("format version " + std::to_string(version) + "; this program reads versions " +
                std::to_string(format::kFirstRead) + " to " + std::to_string(format::kVersion));
  packing_ = version < format::kFirstZstd ? Packing::kDeflate : Packing::kZstd;
  if (length > format::kMaxHeader) return fail("header length " + std::to_string(length) + " is too large");
  std::string text(length, '\0');
  if (!read(text.data(), length)) return fail("ends within its header");
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto points = json.is_object() ? json.find("points") : json.end();
  if (!json.is_object() || points == json.end() || !points->is_array()) return fail("its header is damaged");
  for (const auto& p : *points) {
    const auto name = p.is_object() ? p.find("name") : p.end();
    if (!p.is_object() || name == p.end() || !name->is_string()) return fail("its header is damaged");
    point_names_.push_back(name->get<std::string>());
    std::uint16_t n = 0;
    while (n < kPoints && point_names_.back() != kPointInfo[n].name) n++;
    point_map_.push_back(n);
  }
  return true;
}

bool Reader::load_block() {
  std::uint8_t head[20];
  const std::string at = "at byte " + std::to_string(std::ftell(file_));
  const std::size_t got = std::fread(head, 1, sizeof head, file_);
  if (got == 0) {
    warn("the file has no end mark: the recording was cut off");
    return false;
  }
  if (got != sizeof head) {
    warn("the file ends within a block header " + at);
    return false;
  }
  const std::uint32_t magic = format::get_u32(head), count = format::get_u32(head + 4),
                      raw = format::get_u32(head + 8), stored = format::get_u32(head + 12),
                      crc = format::get_u32(head + 16);
  if (magic == format::kEndMagic) {
    done_ = true;
    const std::uint64_t total = count | static_cast<std::uint64_t>(raw) << 32;
    if (total != total_)
      warn("the file says it has " + std::to_string(total) + " records, but " + std::to_string(total_) +
           " were readable");
    if (const long behind = size_ - std::ftell(file_); behind > 0)
      warn(std::to_string(behind) + " bytes follow the end mark " + at +
           ": two files in one, or another one written over; they are left out");
    return false;
  }
  if (magic != format::kBlockMagic) {
    warn("no block " + at + ": the file is damaged from there on");
    return false;
  }
  // What cannot be compressed becomes longer, by little.
  if (raw > format::kMaxRaw || stored > format::kMaxRaw + format::kMaxRaw / 8 ||
      stored > static_cast<std::uint64_t>(size_) || count > format::kMaxRecords ||
      count > std::uint64_t{raw} * format::kMostSeries) {
    warn("impossible sizes in the block header " + at);
    return false;
  }
  packed_.resize(stored);
  raw_.resize(raw);
  if (!read(packed_.data(), stored)) {
    warn("the file ends within the block " + at);
    return false;
  }
  records_.clear();
  blob_at_.clear();
  file_points_.clear();
  pos_ = 0;
  if (!unpacker_.unpack(packing_, packed_.data(), stored, raw_.data(), raw) ||
      libdeflate_crc32(0, raw_.data(), raw) != crc) {
    warn("the block " + at + " is damaged and left out");
    return true;
  }
  format::Coder coder;
  const std::uint8_t *p = raw_.data(), *end = p + raw;
  const auto keep = [&](Record r, const std::uint8_t* blob) {
    file_points_.push_back(r.point);
    r.point = r.point < point_map_.size() ? point_map_[r.point] : static_cast<std::uint16_t>(kPoints);
    records_.push_back(r);
    blob_at_.push_back(static_cast<std::size_t>(blob - raw_.data()));
  };
  std::vector<Record> series;
  while (records_.size() < count) {
    Record r;
    const std::uint8_t* blob = nullptr;
    if (!coder.decode(p, end, r, &blob, series)) {
      warn("a record in the block " + at + " is damaged; the rest of the block is left out");
      break;
    }
    keep(r, blob);
    for (const Record& other : series) keep(other, blob);
  }
  total_ += records_.size();
  return true;
}

bool Reader::next(Record& record, std::vector<std::uint8_t>& blob) {
  while (pos_ == records_.size()) {
    if (done_ || file_ == nullptr) return false;
    if (!load_block()) {
      done_ = true;
      return false;
    }
  }
  last_ = pos_;
  record = records_[pos_];
  const std::uint8_t* b = raw_.data() + blob_at_[pos_];
  blob.assign(b, b + record.blob_len);
  pos_++;
  return true;
}

const std::string& Reader::file_point_name() const {
  static const std::string kUnknown = "unknown";
  if (last_ >= file_points_.size() || file_points_[last_] >= point_names_.size()) return kUnknown;
  return point_names_[file_points_[last_]];
}

int read_records(const std::string& path,
                 const std::function<void(const Record&, const std::vector<std::uint8_t>&)>& each) {
  Reader reader;
  std::string err;
  if (!reader.open(path, &err)) {
    std::fprintf(stderr, "hcasim-trace: %s\n", err.c_str());
    return 2;
  }
  Record r;
  std::vector<std::uint8_t> blob;
  while (reader.next(r, blob)) each(r, blob);
  if (reader.warning().empty()) return 0;
  std::fprintf(stderr, "hcasim-trace: %s: %s\n", path.c_str(), reader.warning().c_str());
  return 3;
}

}  // namespace hcasim::traces
