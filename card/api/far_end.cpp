// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/far_end.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "card/api/instance.h"
#include "card/api/simulation.h"
#include "card/replay/recording.h"
#include "traces/format.h"

namespace hcasim::api {

namespace {

// Bytes of messages from one meeting to the next that no link carries in that time, and packets, or credits,
// that none has on the way.
constexpr std::size_t kMostBytes = std::size_t{128} << 20, kMostOnTheWay = std::size_t{1} << 17;
constexpr std::int64_t kSpinNs = 20'000, kSayNs = 5'000'000'000;
constexpr int kWaitMs = 50, kShortWaitMs = 1;
constexpr std::int64_t kAskNs = std::int64_t{kWaitMs} * 1'000'000;

std::int64_t real_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class... Fields>
void note(Event event, const Fields&... fields) {
  if (Recorder* recorder = Recorder::current()) recorder->note(event, fields...);
}

class LinkEnd final : public FarEnd, private wire::Link::Owner {
 public:
  LinkEnd(hca& near, wire::Link::Owner& wire, const wire::Address& address, const wire::Hello& hello)
      : near_(near), wire_(wire), link_(address, hello, *this) {}

  std::int64_t poll(std::int64_t now) override { return link_.poll(now); }
  bool waiting() const override { return link_.waiting(); }
  void look(std::int64_t now, bool sleep) override { link_.look(now, sleep); }
  void hold(bool on) override { link_.hold(on); }
  void set_wish(const wire::Wish& wish) override { link_.set_wish(wish); }
  void flush() override {
    if (link_.pending()) link_.flush();
  }
  std::uint8_t* frame(std::size_t most) override;
  Sent commit(std::size_t len, std::uint8_t flags, Time t) override;
  // Not while a recording is made: it has frames, and hello_of() takes no runs.
  bool takes_runs() const override { return link_.takes_runs() && !Recorder::current(); }
  std::uint8_t* run(std::size_t most) override { return link_.frame(most); }
  void free_runs() override { link_.free_runs(); }
  Sent commit_run(std::size_t len, Time t) override {
    link_.commit(len, 0, t, wire::Type::kRun);
    return link_.congested() ? Sent::kFull : Sent::kTaken;
  }
  bool go_on() override {
    link_.poll(real_ns());
    return link_.unsent();
  }
  void find(const Meanwhile& meanwhile) override;
  void send_mark(const wire::Mark& mark) override;
  Hearing hear(const Meanwhile& meanwhile) override;
  void finish(const std::string& reason) override { link_.finish(reason); }

 private:
  // What comes in: calls of a recording.
  std::string wire_up(const wire::Hello& peer) override {
    peer_name_ = peer.name;
    Recorded call(Event::kLinkUp, near_.number, std::string_view(hello_bytes(peer)));
    std::string wrong = wire_.wire_up(peer);
    call.returns(wrong.empty());
    return wrong;
  }
  void wire_down() override {
    Recorded call(Event::kLinkDown, near_.number);
    wire_.wire_down();
  }
  void wire_wish(const wire::Wish& wish) override {
    Recorded call(Event::kLinkCarrier, near_.number, recorded_wish(wish));
    wire_.wire_wish(wish);
  }
  void wire_frame(const wire::Message& frame) override {
    Recorded call(Event::kLinkFrame, near_.number, std::uint64_t{frame.flags}, from_now(frame.time),
                  std::string_view(reinterpret_cast<const char*>(frame.body), frame.len));
    wire_.wire_frame(frame);
  }
  void wire_run(const wire::Run& run, std::int64_t time) override { wire_.wire_run(run, time); }
  void wire_settle() override { wire_.wire_settle(); }
  std::string wire_mark(const wire::Mark& mark) override {
    Recorded call(Event::kLinkMark, near_.number, from_now(mark.at), from_now(mark.next),
                  recorded_wish(mark.wish));
    std::string wrong = wire_.wire_mark(mark);
    call.returns(wrong.empty());
    return wrong;
  }
  void wire_log(int level, const std::string& line) override {
    Recorded call(Event::kLinkLog, near_.number, static_cast<unsigned>(level), std::string_view(line));
    wire_.wire_log(level, line);
  }
  void wire_watch(int fd, bool read, bool write) override { wire_.wire_watch(fd, read, write); }

  bool goes_on(std::int64_t since);
  bool overrun() const {
    const Port& port = near_.model.port();
    return port.arriving() > kMostOnTheWay || port.credits().returning() > kMostOnTheWay;
  }

  hca& near_;
  wire::Link::Owner& wire_;
  std::uint8_t* room_ = nullptr;  // of the frame that is being made; null: it is lost
  std::array<std::uint8_t, wire::kMaxFrameBytes> lost_;
  std::string peer_name_;
  bool said_waiting_ = false;
  std::int64_t asked_ = 0;     // the host, whether to go on waiting: real ns
  std::uint64_t advance_ = 0;  // of the meeting before
  std::int64_t spin_ = 0;      // real ns that it looks for the other end's mark before it sleeps
  wire::Link link_;
};

std::uint8_t* LinkEnd::frame(std::size_t most) {
  if (!link_.up()) return nullptr;
  room_ = link_.frame(most);
  return room_ ? room_ : lost_.data();
}

FarEnd::Sent LinkEnd::commit(std::size_t len, std::uint8_t flags, Time t) {
  Sent sent = Sent::kLost;
  const std::uint8_t* bytes = room_ ? room_ : lost_.data();
  const Digest digest(bytes, Recorder::current() ? len : 0);
  if (room_) {
    link_.commit(len, flags, t);
    sent = link_.congested() ? Sent::kFull : Sent::kTaken;
  }
  note(Event::kLinkTx, near_.number, len, std::uint64_t{flags}, from_now(t), static_cast<std::uint64_t>(sent),
       digest.bytes());
  return sent;
}

// While this end waits: says so when it takes long. False: the host wants no more of it.
bool LinkEnd::goes_on(std::int64_t since) {
  asked_ = real_ns();
  if (!said_waiting_ && asked_ - since > kSayNs) {
    said_waiting_ = true;
    char text[200];
    std::snprintf(text, sizeof text, "waits for %s at the other end of the wire, at %.9f s of simulated time",
                  link_.up() ? peer_name_.c_str() : "an HCA", to_ns(sim_now()) / 1e9);
    wire_log(HCA_LOG_WARNING, text);
  }
  return !near_.ops.keep_waiting || near_.ops.keep_waiting(near_.opaque) != 0;
}

void LinkEnd::find(const Meanwhile& meanwhile) {
  const std::int64_t since = real_ns();
  for (;;) {
    link_.poll(real_ns());
    if (link_.up() || link_.refused() || !goes_on(since)) break;
    meanwhile();
    link_.wait(2);
  }
  note(Event::kLinkFind, near_.number);
}

void LinkEnd::send_mark(const wire::Mark& mark) {
  link_.send_mark(mark);
  note(Event::kLinkTell, near_.number, from_now(mark.next), recorded_wish(mark.wish));
}

FarEnd::Hearing LinkEnd::hear(const Meanwhile& meanwhile) {
  const std::int64_t start = real_ns();
  std::int64_t now = start;
  wire::Link::Pulled got = wire::Link::Pulled::kNothing;
  std::size_t bytes = 0;
  bool too_much = false;
  // Of many meetings none may wait, as the other end's marks are there: while the host does, all the same.
  if (const std::uint64_t advance = Simulation::instance().advances(); advance != advance_) {
    advance_ = advance;
    asked_ = start;
  }
  bool given_up = start - asked_ >= kAskNs && !goes_on(start);
  while (!given_up) {
    got = link_.pull(now);
    bytes += link_.pulled();
    too_much = bytes > kMostBytes || overrun();
    if (got != wire::Link::Pulled::kNothing || too_much) break;
    now = real_ns();
    if (now - start < spin_) continue;
    given_up = !goes_on(start);
    if (given_up) break;
    link_.wait(meanwhile() ? kShortWaitMs : kWaitMs);
    now = real_ns();
  }
  Hearing h{Heard::kMark};
  if (given_up) {
    h.what = Heard::kGivenUp;
  } else {
    // Looking again and again pays when the other end runs beside this one, and costs where it wants this
    // processor.
    spin_ = now - start < kSpinNs ? std::min(2 * spin_ + kSpinNs / 16, kSpinNs) : spin_ / 2;
    h.waited = static_cast<std::uint64_t>(now - start);
    if (got == wire::Link::Pulled::kDown) {
      h.what = Heard::kDown;
    } else if (too_much) {
      h.what = Heard::kTooMuch;
    } else if (said_waiting_) {
      said_waiting_ = false;
      wire_log(HCA_LOG_INFO, "goes on with " + peer_name_);
    }
  }
  note(Event::kLinkHear, near_.number, static_cast<std::uint64_t>(h.what), h.waited);
  return h;
}

FarEndMaker& maker() {
  static FarEndMaker made;
  return made;
}

}  // namespace

std::unique_ptr<FarEnd> make_far_end(hca& near, wire::Link::Owner& wire, const wire::Address& address,
                                     const wire::Hello& hello) {
  if (maker()) return maker()(wire);
  return std::make_unique<LinkEnd>(near, wire, address, hello);
}

void set_far_end_maker(FarEndMaker made) { maker() = std::move(made); }

std::string hello_bytes(const wire::Hello& hello) {
  std::string bytes(wire::kHeaderBytes + wire::kHelloBytes, '\0');
  wire::put_hello(reinterpret_cast<std::uint8_t*>(bytes.data()), hello, 0);
  return bytes;
}

bool hello_of_bytes(std::string_view bytes, wire::Hello& out) {
  wire::Message message;
  std::size_t used = 0;
  const char* why = nullptr;
  return wire::parse(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), true, message, used,
                     why) == wire::Parsed::kMessage &&
         message.type == wire::Type::kHello && used == bytes.size() && wire::parse_hello(message, out);
}

std::uint64_t recorded_wish(const wire::Wish& wish) {
  return std::uint64_t{wish.modes} << 16 | (wish.insists ? 2u : 0u) | (wish.up ? 1u : 0u);
}

wire::Wish wish_of(std::uint64_t recorded) {
  return {(recorded & 1) != 0, (recorded & 2) != 0, static_cast<std::uint16_t>(recorded >> 16)};
}

std::uint64_t from_now(Time t) {
  return traces::format::zigzag(
      static_cast<std::int64_t>(static_cast<std::uint64_t>(t) - static_cast<std::uint64_t>(sim_now())));
}

Time since_now(std::uint64_t recorded) {
  return static_cast<Time>(static_cast<std::uint64_t>(sim_now()) +
                           static_cast<std::uint64_t>(traces::format::unzigzag(recorded)));
}

}  // namespace hcasim::api
