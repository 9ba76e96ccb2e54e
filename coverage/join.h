// SPDX-License-Identifier: BSD-3-Clause
/// Which lines of a driver or a library rang which doorbells and gave which commands: a trace made with
/// guest_pc=on beside the driver's debug information.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coverage/binary.h"
#include "coverage/executed.h"

namespace hcasim::coverage {

struct SourceLine {
  std::string file;  ///< from the root of its tree
  unsigned line = 0;
  std::string function;
  bool operator<(const SourceLine& o) const { return file != o.file ? file < o.file : line < o.line; }
};

/// Says of an instruction the line that it is of, and where the functions are called that the compiler put it
/// into: innermost first.
class Locator {
 public:
  /// Throws std::runtime_error as read_binary() does.
  explicit Locator(const Binary& binary, const std::string& debug);
  ~Locator();
  Locator(const Locator&) = delete;
  Locator& operator=(const Locator&) = delete;
  std::vector<SourceLine> lines_of(const Place& place) const;

 private:
  struct Debug;
  const Binary& binary_;
  std::unique_ptr<Debug> debug_;
};

/// A module of the guest, or a library of its programs.
struct Located {
  std::string name;
  const Binary* binary = nullptr;
  const Locator* locator = nullptr;
};

/// What one line of a driver did to the card.
struct LineWork {
  std::uint64_t writes = 0;           ///< to registers
  std::vector<std::string> wqes;      ///< "HCA:QPN:FIRST-LAST", with ".LIFE" as WqeId, a doorbell, in order
  std::vector<std::string> commands;  ///< "cmd:HCA:SEQ NAME" or "cmd:HCA.FUNCTION:SEQ NAME", in order
};

struct Joined {
  std::map<SourceLine, LineWork> lines;
  std::uint64_t writes = 0, elsewhere = 0;  ///< register writes; those whose code is in none of `modules`
};

/// Throws std::runtime_error if the file is no trace, or has no point guest_code.
Joined join(const std::string& trace, const std::vector<Located>& modules, const std::vector<Load>& loads);

}  // namespace hcasim::coverage
