// SPDX-License-Identifier: BSD-3-Clause
// Two byte streams, one each way, in memory that two processes share: what a wire of shared memory carries
// its messages in. One end makes the memory and passes its file to the other one.
//
// Each direction has a ring with a single writer and a single reader. The ring is mapped twice, one copy
// behind the other, so that any part of it is in one piece. Positions count bytes from the start and never
// wrap. An end sleeps only after it has said so in the shared memory; whoever then has something for it wakes
// it, by means that are not this file's business.
//
// The other end is not trusted: positions are checked each time they are read, what they say is kept here,
// the memory cannot be made smaller under this end's feet (it is sealed), and bytes may change until they
// have been copied.
#ifndef HCASIM_WIRE_RINGS_H
#define HCASIM_WIRE_RINGS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hcasim::wire {

class Rings {
 public:
  // Of each direction. Room for what perftest has outstanding by default (128 writes of 64 KiB), so that its
  // port is not stopped again and again.
  static constexpr std::size_t kBytes = std::size_t{16} << 20;

  // New memory, or that of a file that the other end has passed (which stays the caller's). Null: why not.
  static std::unique_ptr<Rings> make(std::string& why);
  static std::unique_ptr<Rings> take(int file, std::string& why);
  ~Rings();
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

  // make(): the memory's file, to be passed on; it is closed with this object, or by forget_file().
  int file() const { return file_; }
  void forget_file();

  // ---- outward ----

  // Bytes that can be written now.
  std::size_t room();
  // Where they go, room() bytes in one piece.
  std::uint8_t* end() { return out_.bytes + out_.at % kBytes; }
  // That many of them are there, and are seen by the reader at the next publish().
  void wrote(std::size_t bytes) { out_.at += bytes; }
  // True: the reader sleeps, and has to be woken.
  bool publish();
  // Published or not, and not read yet.
  std::size_t unread();
  // There is no room: the reader is asked to say when there is. False: there is some by now.
  bool wait_for_room();

  // ---- inward ----

  std::size_t available();
  const std::uint8_t* begin() const { return in_.bytes + in_.at % kBytes; }
  // That many bytes are done with, or, took(), looked at: they stay until the next free_taken().
  void took(std::size_t bytes) { in_.at += bytes; }
  std::size_t taken() const { return static_cast<std::size_t>(in_.at - freed_); }
  // True: the writer waits for room, and has to be woken.
  bool free_taken();
  bool consume(std::size_t bytes) {
    took(bytes);
    return free_taken();
  }
  // There is something beyond what was taken; available() says how much.
  bool waiting() const;
  // There is more than available() has said last.
  bool grown() const;
  // This end looks again and again: it need not be woken before the next sleep().
  void stay_awake();
  // This end is about to sleep. False: it must not, more is there than available() has said last.
  bool sleep();

  // The other end has written positions that cannot be.
  bool broken() const { return broken_; }

 private:
  struct Shared;
  struct Direction;
  struct Side {
    Direction* shared = nullptr;
    std::uint8_t* bytes = nullptr;  // 2 * kBytes, mapped twice
    std::uint64_t at = 0;           // this end's position
    std::uint64_t other = 0;        // the other end's as last read
  };

  Rings(int file, bool maker) : file_(file), maker_(maker) {}
  std::size_t unread(std::memory_order order);
  bool map(std::string& why);

  int file_;
  bool maker_, broken_ = false;
  Shared* shared_ = nullptr;
  Side out_, in_;
  std::uint64_t freed_ = 0;  // the writer has heard of
};

}  // namespace hcasim::wire
#endif
