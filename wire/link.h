// SPDX-License-Identifier: BSD-3-Clause
// One end of a wire to another process. Whoever comes first listens, the second one connects; when the
// connection is lost, both try again. Nothing here blocks, and there is no thread: the owner watches the file
// descriptors it is told of and calls poll() when one is ready or when time has come.
#ifndef HCASIM_WIRE_LINK_H
#define HCASIM_WIRE_LINK_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "wire/address.h"
#include "wire/protocol.h"

namespace hcasim::wire {

class Link {
 public:
  // What the owner is told, from inside poll(). It must not call back into the link, but for set_carrier().
  class Owner {
   public:
    // A peer has said hello. "": welcome; otherwise why it is sent away.
    virtual std::string wire_up(const Hello& peer) = 0;
    virtual void wire_down() = 0;
    virtual void wire_carrier(bool on) = 0;
    virtual void wire_frame(const Message& frame) = 0;
    // Coupled ends only, from inside pull(). "": as it should be; otherwise why the connection ends.
    virtual std::string wire_mark(const Mark&) { return "a mark"; }
    // Poll when fd is ready for what is asked; neither: no longer, the fd is about to be closed.
    virtual void wire_watch(int fd, bool read, bool write) = 0;
    // level as in hca_log_level
    virtual void wire_log(int level, const std::string& line) = 0;

   protected:
    ~Owner() = default;
  };

  static constexpr std::int64_t kNever = INT64_MAX;
  // Bytes that wait to be sent, from which on congested() holds, and at which frames are lost.
  static constexpr std::size_t kHighWater = std::size_t{1} << 20, kCapacity = std::size_t{8} << 20;

  Link(const Address& address, const Hello& own, Owner& owner);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Does what there is to do; `now`: ns of any clock that goes on. Returns when it wants to be called again
  // even if no descriptor is ready.
  std::int64_t poll(std::int64_t now);

  bool up() const;
  // Room for a frame of at most `most` bytes behind its header, to be filled and committed at once. Null: not
  // up, or no room (counted).
  std::uint8_t* frame(std::size_t most);
  void commit(std::size_t len, std::uint8_t flags, std::int64_t time);
  // Sends what was committed, as far as the socket takes it.
  void flush();
  bool pending() const;        // there is something to flush
  bool congested() const;      // the peer takes less than is sent
  std::uint64_t lost() const;  // frames without room

  void set_carrier(bool on);
  // Nothing is read while held: the owner cannot take it.
  void hold(bool on);

  // Coupled ends (Hello::coupled): once up, nothing is read but by pull(), and nothing is lost for want of
  // room. The mark is sent at once, with all that was committed before it.
  void send_mark(const Mark& mark);
  // Takes what has come, up to a mark. kDown: the connection is gone.
  enum class Pulled : std::uint8_t { kNothing, kMark, kDown };
  Pulled pull(std::int64_t now);
  // Waits until there is something to pull, for at most so long.
  void wait(int milliseconds);
  // An end of this kind, but not one for us, has been met: its version or what it wants does not fit.
  bool refused() const;
  // Ends for good: closes, with the reason told to the peer ("": it knows), and looks for no other one.
  void finish(const std::string& reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hcasim::wire
#endif
