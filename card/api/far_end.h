// SPDX-License-Identifier: BSD-3-Clause
// What a SocketWire has at its far end: a link to an HCA of another process, or the recording of one. All
// that depends on the other process, on sockets and on real time stands here, and passes a recording if there
// is one: what comes in (Link::Owner), and what becomes of that which is sent.
#ifndef HCASIM_CARD_FAR_END_H
#define HCASIM_CARD_FAR_END_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "card/api/hca_api.h"
#include "model/time.h"
#include "wire/link.h"

struct hca;

namespace hcasim::api {

// Passes what comes in to a wire::Link::Owner, from inside poll(), find(), send_mark() and hear().
class FarEnd {
 public:
  virtual ~FarEnd() = default;

  // As hca_wire_poll(), hca_wire_waiting(), hca_wire_look(), hca_wire_hold().
  virtual std::int64_t poll(std::int64_t) { return HCA_NEVER; }
  virtual bool waiting() const { return false; }
  virtual void look(std::int64_t, bool) {}
  virtual void hold(bool) {}
  virtual void set_wish(const wire::Wish&) {}
  // Sends what was committed.
  virtual void flush() {}
  // Where to put a frame of at most `most` (up to wire::kMaxFrameBytes) bytes, to be committed at once; null:
  // nobody is there.
  virtual std::uint8_t* frame(std::size_t most) = 0;
  enum class Sent : std::uint8_t { kTaken, kFull, kLost };  // kFull: taken, but more should wait for a while
  virtual Sent commit(std::size_t len, std::uint8_t flags, Time t) = 0;
  // The same for runs (up to wire::kMaxRunBytes), if they are taken.
  virtual bool takes_runs() const { return false; }
  virtual std::uint8_t* run(std::size_t) { return nullptr; }
  virtual Sent commit_run(std::size_t, Time) { return Sent::kLost; }
  // Nobody looks at the runs any more that have come.
  virtual void free_runs() {}

  // Coupled time. While one wire waits, the others look for their ends too, and send what is unsent: those
  // wait for it that this one waits for. True: something is left.
  using Meanwhile = std::function<bool()>;
  virtual bool go_on() { return false; }
  // Waits for the other end; the owner knows afterwards whether it is there.
  virtual void find(const Meanwhile& meanwhile) = 0;
  virtual void send_mark(const wire::Mark& mark) = 0;
  // Waits for the other end's mark.
  enum class Heard : std::uint8_t { kMark, kDown, kGivenUp, kTooMuch };
  struct Hearing {
    Heard what;
    std::uint64_t waited = 0;  // real ns; 0: the mark was there
  };
  virtual Hearing hear(const Meanwhile& meanwhile) = 0;
  // Ends for good; the reason is sent to the other end.
  virtual void finish(const std::string& reason) = 0;
};

std::unique_ptr<FarEnd> make_far_end(hca& near, wire::Link::Owner& wire, const wire::Address& address,
                                     const wire::Hello& hello);
// A replay has its own.
using FarEndMaker = std::function<std::unique_ptr<FarEnd>(wire::Link::Owner& wire)>;
void set_far_end_maker(FarEndMaker maker);

// A hello in a recording: as it is on a wire.
std::string hello_bytes(const wire::Hello& hello);
bool hello_of_bytes(std::string_view bytes, wire::Hello& out);
// What an end wants of the link, in a recording.
std::uint64_t recorded_wish(const wire::Wish& wish);
wire::Wish wish_of(std::uint64_t recorded);
// A simulated time (ps) in a recording, as how far it is from now; any one, even a stranger's.
std::uint64_t from_now(Time t);
Time since_now(std::uint64_t recorded);

}  // namespace hcasim::api
#endif
