// SPDX-License-Identifier: BSD-3-Clause
/// Reads trace files, including damaged ones and those of other versions (points are matched by name).
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "traces/packing.h"
#include "traces/tracer.h"

namespace hcasim::traces {

class Reader {
 public:
  ~Reader();
  /// false: not a trace file; `*err` says why.
  bool open(const std::string& path, std::string* err);

  /// The next record in file order. `record.point` is the point's number in this program, Point::kCount for
  /// an unknown one (see file_point_name()). false: end of file, or warning() says what is wrong.
  bool next(Record& record, std::vector<std::uint8_t>& blob);
  /// The name that the file gives the last record's point.
  const std::string& file_point_name() const;

  /// Empty if the file was complete and undamaged up to here.
  const std::string& warning() const { return warning_; }

 private:
  bool load_block();
  bool read(void* p, std::size_t n);
  void warn(const std::string& what);

  std::FILE* file_ = nullptr;
  std::string warning_;
  std::vector<std::uint16_t> point_map_;
  std::vector<std::string> point_names_;
  Packing packing_ = Packing::kZstd;
  Unpacker unpacker_;
  std::vector<std::uint8_t> raw_, packed_;
  std::vector<Record> records_;
  std::vector<std::size_t> blob_at_;
  std::vector<std::uint16_t> file_points_;
  std::size_t pos_ = 0, last_ = 0;
  std::uint64_t total_ = 0;
  long size_ = 0;
  bool done_ = false;
};

/// Gives all records of a file to `each`, and says on standard error what is wrong with it. Status 0: they
/// are all there; 2: it cannot be opened; 3: it is damaged, and what could be read was given.
int read_records(const std::string& path,
                 const std::function<void(const Record&, const std::vector<std::uint8_t>& blob)>& each);

}  // namespace hcasim::traces
