// SPDX-License-Identifier: BSD-3-Clause
/// Captures of the wire: pcapng files (IETF draft-ietf-opsawg-pcapng) with nanoseconds of simulated time.
///
/// Packets may be given ahead of their time, and out of order; the file holds them sorted by time, as long as
/// none is given later than a packet behind it was let go (Capture::settle()). Its bytes depend on the
/// packets only.
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
  /// LINKTYPE_ of tcpdump.org. InfiniBand stands in records of ERF, as ibdump writes it: the number that
  /// packets without such a header have (247) is known to no Wireshark.
  enum class Link : std::uint16_t { kEthernet = 1, kInfiniBand = 197 };
  enum class Direction : std::uint8_t { kIn = 1, kOut = 2 };  ///< as epb_flags have them

  /// The capture of that file, shared by all who name it. nullptr: `*err` says why.
  static std::shared_ptr<Capture> get(const std::string& path, std::string* err);

  explicit Capture(std::FILE* file, std::string path);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// Another port; returns its number in this file.
  std::uint32_t add_interface(const std::string& name, Link link);
  /// Ethernet without FCS, InfiniBand from the LRH to the VCRC. comment: may be null.
  void packet(std::uint32_t interface, std::int64_t time_ps, Direction direction, const std::uint8_t* bytes,
              std::size_t len, const char* comment);
  /// Nothing is to come before this time any more: what is waiting from before it is written.
  void settle(std::int64_t time_ps);
  /// What has been written can be read by others.
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
