// SPDX-License-Identifier: BSD-3-Clause
// A recording of all that passes the C API in either direction, in its order: what replay drives the model by
// (option record=FILE). One a process, from its first HCA on.
//
// It is a stream of records (traces/stream_file.h). A record is the event as a byte, then its fields as the
// table below has them: numbers as varints, times as how far (signed) they are from the last time, texts and
// bytes as their length and themselves. Of those with ChunkStore::kShortest bytes or more, runs of bytes that
// stand as they are (their number, then they) take turns with runs of chunks that are known (their number,
// then the slot of each), until there are as many bytes as the length says. A call's record is followed by
// those of the callbacks that are made in it, each written when the host has answered, then by that of its
// return. Calls that come back from a callback stand before the record of that callback.
#ifndef HCASIM_CARD_RECORDING_H
#define HCASIM_CARD_RECORDING_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "card/api/hca_api.h"
#include "card/replay/chunk_store.h"
#include "model/clock.h"
#include "traces/qp_tag.h"
#include "traces/stream_file.h"

namespace hcasim {
struct Profile;
}

namespace hcasim::api {

inline constexpr char kRecordingMagic[] = "HCASIMRP";
inline constexpr std::uint32_t kRecordingVersion = 4;
// Of the C API, whose calls a recording holds: since then there have been new ones only.
inline constexpr std::uint64_t kOldestApi = 6;

// EVENT(name, what it is, fields): n number, h number of an HCA and of its PCIe function (device_number()), t
// time of the host's clock, s bytes. Those before kReturn are calls, and those from kVscRead on but kSaved
// and kWireTxAt; the others are callbacks; new ones go to the end, so that older recordings can be read. A
// wire= to another process (far_end.h) is a host of its own: what comes in there is a call, what the HCA
// sends or waits for a callback. Its numbers called "time" are ps from now (from_now()).
#define HCASIM_RECORDED_EVENTS(EVENT)                                                                 \
  EVENT(kHello, "recording", "n")      /* version of the API */                                       \
  EVENT(kCreate, "hca_create", "nsss") /* what the host has, options, profile, faults (TOML) */       \
  EVENT(kStart, "hca_sim_start", "t")                                                                 \
  EVENT(kAdvance, "hca_sim_advance", "tn")     /* now, ahead */                                       \
  EVENT(kMmioRead, "hca_mmio_read", "hnn")     /* offset, size */                                     \
  EVENT(kMmioWrite, "hca_mmio_write", "hnnn")  /* offset, value, size */                              \
  EVENT(kBurst, "hca_mmio_write_burst", "hns") /* offset, data */                                     \
  EVENT(kReset, "hca_reset", "h")                                                                     \
  EVENT(kDestroy, "hca_destroy", "h")                                                                 \
  EVENT(kCable, "hca_cable", "hh")                                                                    \
  EVENT(kWireRx, "hca_wire_rx", "hs")       /* frame */                                               \
  EVENT(kCarrier, "hca_wire_carrier", "hn") /* up */                                                  \
  EVENT(kInject, "hca_inject", "hs")        /* fault */                                               \
  EVENT(kSetTrace, "hca_set_trace", "hss")  /* key, value */                                          \
  EVENT(kMemory, "hca_memory_changed", "h")                                                           \
  EVENT(kLinkUp, "link_up", "hs") /* hello; returns whether it is welcome */                          \
  EVENT(kLinkDown, "link_down", "h")                                                                  \
  EVENT(kLinkCarrier, "link_carrier", "hn")  /* wish */                                               \
  EVENT(kLinkFrame, "link_frame", "hnns")    /* flags, time sent, frame */                            \
  EVENT(kLinkMark, "link_mark", "hnnn")      /* time, next time, wishes; whether that is right */     \
  EVENT(kLinkLog, "link_log", "hns")         /* level, line */                                        \
  EVENT(kStatistics, "hca_stats_json", "hs") /* what it says; no return follows */                    \
  EVENT(kEnd, "end", "n")                    /* events before it; no return follows */                \
  EVENT(kReturn, "return", "n")                                                                       \
  EVENT(kDmaRead, "dma_read", "hnnns")    /* address, length, 1 = done, the bytes if done */          \
  EVENT(kDmaWrite, "dma_write", "hnnns")  /* address, length, 1 = done, digest */                     \
  EVENT(kMsix, "msix", "hn")              /* vector */                                                \
  EVENT(kLog, "log", "hns")               /* level, line */                                           \
  EVENT(kWireTx, "wire_tx", "hnns")       /* length, what the host said, digest of the frame */       \
  EVENT(kPcieError, "pcie_error", "hnns") /* what, bit, name */                                       \
  EVENT(kLinkTx, "link_tx", "hnnnns")     /* length, flags, time, FarEnd::Sent, digest */             \
  EVENT(kLinkFind, "link_find", "h")                                                                  \
  EVENT(kLinkTell, "link_tell", "hnn")    /* next time, wanted */                                     \
  EVENT(kLinkHear, "link_hear", "hnn")    /* FarEnd::Heard, waited */                                 \
  EVENT(kQuiet, "quiet_until", "hn")      /* due_number() from simulated time on */                   \
  EVENT(kState, "hca_state_digest", "hn") /* what it says, behind kStatistics; no return */           \
  EVENT(kVscRead, "hca_vsc_read", "hn")   /* offset; kVscWrite: offset, value */                      \
  EVENT(kVscWrite, "hca_vsc_write", "hnn")                                                            \
  EVENT(kAttach, "hca_attach_function", "hn") /* 1: it is on the bus, 0: not any more */              \
  EVENT(kFunctionReset, "hca_function_reset", "h")                                                    \
  EVENT(kSaved, "state", "ts") /* now, what hca_sim_save() says; no return follows */                 \
  EVENT(kLoad, "hca_sim_load", "s")                                                                   \
  EVENT(kWireRxAt, "hca_wire_rx_at", "hns")            /* time, frame */                              \
  EVENT(kWireTxAt, "wire_tx_at", "hnnns")              /* length, time, what the host said, digest */ \
  EVENT(kCode, "hca_function_code", "hnnnn")           /* offset, value, program counter, caller */   \
  EVENT(kAts, "hca_function_ats", "hn")                /* on */                                       \
  EVENT(kInvalidate, "hca_function_invalidate", "hnn") /* address, length */

enum class Event : std::uint8_t {
#define EVENT(name, text, fields) name,
  HCASIM_RECORDED_EVENTS(EVENT)
#undef EVENT
};

// An h field. Of function 0, and of what concerns the card as a whole, it is the HCA's number alone.
constexpr unsigned kMaxHcas = traces::kMostHcas;
constexpr std::uint64_t device_number(unsigned hca, unsigned function) {
  return hca | std::uint64_t{function} * kMaxHcas;
}
constexpr std::uint64_t hca_of(std::uint64_t device) { return device % kMaxHcas; }
constexpr std::uint64_t function_of(std::uint64_t device) { return device / kMaxHcas; }

// What a host has of what it may leave out.
inline constexpr std::uint64_t kHostLogs = 1, kHostTakesFrames = 2, kHostTellsQuiet = 4, kHostTakesTimes = 8;

struct EventInfo {
  const char* name;
  std::string_view fields;
};
inline constexpr EventInfo kEventInfo[] = {
#define EVENT(name, text, fields) {text, fields},
    HCASIM_RECORDED_EVENTS(EVENT)
#undef EVENT
};
inline constexpr std::size_t kEvents = sizeof kEventInfo / sizeof kEventInfo[0];
inline const EventInfo& info(Event e) { return kEventInfo[static_cast<std::size_t>(e)]; }

// Bytes that are only compared: themselves if they are few, else 8 bytes made of them.
class Digest {
 public:
  static constexpr std::size_t kWhole = 64;
  Digest(const void* bytes, std::size_t len);
  std::string_view bytes() const { return bytes_; }

 private:
  char made_[8];
  std::string_view bytes_;
};

// What hca_sim_advance() has returned, as the return's number.
constexpr std::uint64_t due_number(std::int64_t due, std::int64_t now) {
  if (due == HCA_NEVER) return 0;
  const std::int64_t d = due - now;
  return 1 + (static_cast<std::uint64_t>(d) << 1 ^ static_cast<std::uint64_t>(d >> 63));
}

constexpr std::int64_t due_of_number(std::uint64_t number, std::int64_t now) {
  if (number == 0) return HCA_NEVER;
  const std::uint64_t d = (number - 1) >> 1 ^ (0 - ((number - 1) & 1));
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(now) + d);
}

// The parameters in force as a profile's file.
std::string profile_text(const Profile& profile);

class Recorder {
 public:
  // The recording of this process, or null.
  static Recorder* current() { return current_; }
  // Begins it, if there is a path. False: `why` says why not. first: there is no HCA yet. state_every: from
  // one saved state in it to the next, 0: none.
  static bool begin(const std::string& path, Time state_every, bool first, std::string& why);

  // A time among the fields.
  struct At {
    std::int64_t ns;
  };
  template <class... Fields>
  void note(Event event, const Fields&... fields) {
    if (finished_) return;
    record_.clear();
    record_.push_back(static_cast<char>(event));
    (add(fields), ...);
    events_ += event != Event::kReturn;
    stream_->put(record_.data(), record_.size());
  }
  void finish();
  bool finished() const { return finished_; }
  // Whether there is to be a state in it at this time of the host's clock. Asked with times that grow, but
  // for those of another run.
  bool wants_state(std::int64_t now) {
    if (state_every_ == 0 || finished_) return false;
    if (now < state_at_) state_at_ = now;
    return now - state_at_ >= state_every_;
  }
  void note_state(std::int64_t now, std::string_view state) {
    state_at_ = now;
    note(Event::kSaved, At{now}, state);
  }
  void no_more_states() { state_every_ = 0; }

 private:
  Recorder(const std::string& path, std::unique_ptr<traces::StreamWriter> stream, Time state_every)
      : path_(path), stream_(std::move(stream)), state_every_((state_every + 999) / 1000) {}
  void add(std::uint64_t number);
  void add(std::string_view bytes);
  void add(At time);
  void add_chunks(std::string_view bytes);

  static inline Recorder* current_ = nullptr;
  const std::string path_;
  const std::unique_ptr<traces::StreamWriter> stream_;
  std::string record_;
  ChunkStore known_;
  std::vector<std::uint64_t> slots_;  // of the run that is being written
  std::int64_t time_ = 0;
  std::uint64_t events_ = 0;
  bool finished_ = false;
  std::int64_t state_every_, state_at_ = INT64_MAX;  // ns
};

// A call's record, if there is a recording, and that of its return.
class Recorded {
 public:
  template <class... Fields>
  explicit Recorded(Event event, const Fields&... fields) : recorder_(Recorder::current()) {
    if (recorder_) recorder_->note(event, fields...);
  }
  ~Recorded() {
    if (recorder_) recorder_->note(Event::kReturn, result_);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  void returns(std::uint64_t number) { result_ = number; }

 private:
  Recorder* const recorder_;
  std::uint64_t result_ = 0;
};

// A record, read.
struct Noted {
  Event event = Event::kEnd;
  std::array<std::uint64_t, 5> numbers{};  // h, n and t fields, in order
  std::array<std::string, 3> texts;        // s fields
  // "hca0 dma_read(0x1000, 64, 1, 64 bytes)"
  std::string text() const;
};

class RecordingReader {
 public:
  // False: `err` says why.
  bool open(const std::string& path, std::string& err);
  // False: it has ended; warning() says why if not by its end mark.
  bool next(Noted& out);
  const std::string& warning() const { return warning_; }

 private:
  bool number(std::uint64_t& out);
  bool bytes(std::string& out);
  bool plain(std::string& out, std::uint64_t len);
  bool chunks(std::string& out, std::uint64_t len);
  bool damaged(const char* what);

  traces::StreamReader stream_;
  ChunkStore known_;
  std::int64_t time_ = 0;
  std::string warning_;
};

}  // namespace hcasim::api
#endif
