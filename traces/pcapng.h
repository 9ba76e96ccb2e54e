// SPDX-License-Identifier: BSD-3-Clause
/// Captures of the wire: pcapng files (IETF draft-ietf-opsawg-pcapng) with nanoseconds of simulated time.
///
/// Packets may be passed ahead of their time and out of order; the file is sorted by time, provided that no
/// packet is older than the last Capture::settle(). The file's bytes depend on the packets alone.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <queue>
#include <string>
#include <vector>

namespace hcasim::traces {

class Capture {
 public:
  /// LINKTYPE_ of tcpdump.org. InfiniBand packets are wrapped in ERF records, as ibdump does: no Wireshark
  /// knows the link type of bare ones (247).
  enum class Link : std::uint16_t { kEthernet = 1, kInfiniBand = 197 };
  enum class Direction : std::uint8_t { kIn = 1, kOut = 2 };  ///< as in epb_flags

  /// The capture of that file, shared by all callers that name it. nullptr: `*err` says why.
  static std::shared_ptr<Capture> get(const std::string& path, std::string* err);

  explicit Capture(std::FILE* file, std::string path);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// Adds a port; returns its interface number in this file.
  std::uint32_t add_interface(const std::string& name, Link link);
  /// Ethernet without FCS, InfiniBand from the LRH to the VCRC. comment: may be null.
  void packet(std::uint32_t interface, std::int64_t time_ps, Direction direction, const std::uint8_t* bytes,
              std::size_t len, const char* comment);
  /// No packet will come with an earlier time than this: writes the waiting ones that are older.
  void settle(std::int64_t time_ps);
  /// Makes what has been written visible to readers of the file.
  void flush();
  /// Writes all and closes the file.
  void finish();

 private:
  struct Waiting {
    std::int64_t time_ps;
    std::uint64_t order;
    std::string block;
    bool operator>(const Waiting& o) const {
      return time_ps != o.time_ps ? time_ps > o.time_ps : order > o.order;
    }
  };
  void write(const std::string& bytes);

  std::FILE* file_;
  const std::string path_;
  bool failed_ = false;
  std::vector<Link> interfaces_;
  std::uint64_t order_ = 0;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace hcasim::traces
