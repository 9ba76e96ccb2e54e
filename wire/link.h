// SPDX-License-Identifier: BSD-3-Clause
// One end of a wire to another process. The first process listens, the second one connects; when the
// connection is lost, both try again. The owner watches the file descriptors that wire_watch() names, and
// calls poll() when one is ready or at the time that poll() returned. Nothing blocks, but for the constructor
// while it looks up a name: one that is not found then is looked for again by a thread.
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
  // Callbacks, made from inside poll(). They must not call back into the link, except set_wish().
  class Owner {
   public:
    // A peer has sent its hello. Returns "" to accept it, else the reason for refusing it.
    virtual std::string wire_up(const Hello& peer) = 0;
    virtual void wire_down() = 0;
    virtual void wire_wish(const Wish& wish) = 0;
    virtual void wire_frame(const Message& frame) = 0;
    // Only if Hello::runs. Its bytes may change while they are looked at, and go with wire_settle(). time: as
    // of a frame, of its last packet.
    virtual void wire_run(const Run&, std::int64_t /*time*/) {}
    // The bytes of all runs are about to go: from inside free_runs(), poll(), or at the connection's end.
    virtual void wire_settle() {}
    // Coupled ends only, from inside pull(). Returns "" or the reason why the connection ends.
    virtual std::string wire_mark(const Mark&) { return "a mark"; }
    // Call poll() when fd is ready as asked. Neither read nor write: stop watching, fd is about to be closed.
    virtual void wire_watch(int fd, bool read, bool write) = 0;
    // level: as in hca_log_level
    virtual void wire_log(int level, const std::string& line) = 0;

   protected:
    ~Owner() = default;
  };

  static constexpr std::int64_t kNever = INT64_MAX;
  // Bytes waiting to be sent: from kHighWater on congested() holds, beyond kCapacity frames are lost.
  static constexpr std::size_t kHighWater = std::size_t{1} << 20, kCapacity = std::size_t{8} << 20;

  Link(const Address& address, const Hello& own, Owner& owner);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Does all work that is due; `now`: ns of any monotonic clock. Returns when to call again even if no
  // descriptor is ready.
  std::int64_t poll(std::int64_t now);

  bool up() const;
  // Buffer space for a frame of at most `most` bytes, to be filled and committed immediately. Null: not up,
  // or no room (counted).
  std::uint8_t* frame(std::size_t most);
  void commit(std::size_t len, std::uint8_t flags, std::int64_t time, Type type = Type::kFrame);
  // Its owner is done with the runs that have come, or will be after wire_settle().
  void free_runs();
  // The other end takes runs: a message of that type, made by put_run(), in the place of a frame.
  bool takes_runs() const;
  // Sends committed data, as far as the socket accepts it.
  void flush();
  bool pending() const;        // there is data to flush
  bool unsent() const;         // the same, or the peer has not made room for it
  bool congested() const;      // the peer reads more slowly than we send
  std::uint64_t lost() const;  // frames without room

  void set_wish(const Wish& wish);
  // While on, nothing is read: the owner cannot accept frames.
  void hold(bool on);

  // Through shared memory, for an owner who looks every microsecond or so: whether poll() would read
  // something. No system call.
  bool waiting() const;
  // Reads it. Until the next poll(), or if sleep is true from the end of this call on, the other end does not
  // wake this one.
  void look(std::int64_t now, bool sleep);

  // Coupled ends (Hello::coupled): once up, only pull() reads, and no frame is lost for lack of room. The
  // mark is sent immediately, together with everything committed before it.
  void send_mark(const Mark& mark);
  // Handles what has arrived, up to the next mark, and no more than is taken at a time: kNothing then, too,
  // and wait() does not wait. kDown: the connection is gone.
  enum class Pulled : std::uint8_t { kNothing, kMark, kDown };
  Pulled pull(std::int64_t now);
  // Bytes of all messages that the last pull() has handled.
  std::size_t pulled() const;
  // Waits until there is something to pull, or for this long.
  void wait(int milliseconds);
  // A peer was found whose version or settings do not match ours.
  bool refused() const;
  // Closes for good, sends the peer the reason ("": it knows), and does not look for another peer.
  void finish(const std::string& reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hcasim::wire
#endif
