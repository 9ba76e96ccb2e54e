// SPDX-License-Identifier: BSD-3-Clause
// Drives the model by a recording (recording.h): the calls that the host made, and its answers to what the
// model asked. What the model does is compared with what it did when it was recorded.
#ifndef HCASIM_CARD_REPLAY_H
#define HCASIM_CARD_REPLAY_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "card/replay/recording.h"

namespace hcasim::api {

struct ReplayOptions {
  std::string trace;    // file for the traces of the HCAs that had one, of all if none had; empty: none
  std::string capture;  // likewise
  std::int64_t until = HCA_NEVER;      // ns of simulated time at which it ends
  std::uint64_t stop_at = UINT64_MAX;  // number of the event before which it ends
  std::uint64_t reload_every = 0;      // events after which the HCAs are saved and loaded again; 0: never
  std::string save;                    // file for the state before stop_at; empty: none
  std::int64_t from = HCA_NEVER;       // ns of simulated time: begins with the last state recorded until then
  std::string from_state;              // file of a state to begin with instead; empty: none
  std::uint64_t from_event = 0;        // number of the event that is the next one then
  std::uint64_t trap_at = UINT64_MAX;  // number of the event before which SIGTRAP is raised, for a debugger
  std::string kernel;                  // the option kernel of all HCAs; empty: as recorded
  bool echo_log = false;               // what the HCAs log, to stderr
};

class Replay {
 public:
  explicit Replay(const ReplayOptions& options) : options_(options) {}
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Once a process, as there is one SystemC kernel. False: `err` says why nothing could be replayed.
  bool run(const std::string& path, std::string& err);

  // Where the model has done something else than it did then; empty: nowhere.
  const std::string& divergence() const { return divergence_; }
  // Why the recording, or this replay of it, ended before its end; empty if it did not.
  const std::string& early_end() const { return early_end_; }
  std::uint64_t events() const { return events_; }
  std::int64_t simulated() const;                      // ns
  std::int64_t began_at() const { return began_at_; }  // of simulated time, ns
  // Of how many HCAs the statistics were compared; those of all HCAs as they are now, a JSON object each.
  unsigned compared() const { return compared_; }
  // How many states in the recording were compared with those of the model.
  unsigned states() const { return states_; }
  std::vector<std::string> statistics() const;

 private:
  class Peer;
  struct Function {
    Replay* replay;
    std::uint64_t number;  // of its HCA, and of itself (device_number())
    hca_t* hca = nullptr;
    Peer* peer = nullptr;  // of a wire= to another process, as long as the HCA is in service
  };

  bool next(Noted& out);
  // Does the call, and all that the recording has up to its return.
  void call(const Noted& record);
  // The call alone. False: what it returns is not to be compared.
  bool perform(const Noted& record, std::uint64_t& result);
  bool pass(const Noted& record, std::uint64_t& result);
  bool from_wire(const Noted& record, std::uint64_t& result);
  bool create(const Noted& record, std::uint64_t& result);
  // Of an h field; null: it names none.
  hca_t* hca_of(std::uint64_t device);
  static hca_host_ops function_ops();
  void attach(hca_t* h, std::uint64_t device, bool on);

  // A callback of the model's: what was recorded for it, or null if the replay is over. `made`: what it asks;
  // `fields`: how many of its numbers, and whether its text, are its own, not the host's answer.
  const Noted* answer(Noted& made, std::size_t fields, bool text);
  void diverge(const std::string& expected, const std::string& got);
  void end_early(const std::string& why);
  // replay_states.cpp
  // Begins with the state that is asked for: of what was before, only that is done which says what HCAs there
  // are, and which functions are on the bus.
  bool begin_at_state(const std::string& path, std::string& err);
  bool begin_with(const std::string& state, std::uint64_t event, std::string& err);
  class FarEnds;
  void join(const FarEnds& ends);
  std::string saved_state();
  void stop();
  // Saves all HCAs and loads them again; what is saved then must be the same.
  void reload();

  static int dma_read(void* self, std::uint64_t addr, void* dst, std::size_t len);
  static int dma_write(void* self, std::uint64_t addr, const void* src, std::size_t len);
  static void msix(void* self, unsigned vector);
  static void pcie_error(void* self, int what, std::uint32_t bit, const char* name);
  static void log(void* self, int level, const char* message);
  static int wire_tx(void* self, const void* frame, std::size_t len);
  static int wire_tx_at(void* self, const void* frame, std::size_t len, std::int64_t ps);
  static std::int64_t quiet_until(void* self);

  const ReplayOptions options_;
  RecordingReader reader_;
  // Physical ones, by the number of their HCA, and virtual ones. Never deleted: the model calls them until
  // the process ends.
  std::vector<Function*> functions_;
  std::vector<std::unique_ptr<Function>> virtual_;
  Noted answer_;
  std::string divergence_, early_end_, refused_;
  std::uint64_t events_ = 0;
  std::int64_t start_ = 0, began_at_ = 0;
  bool started_ = false, over_ = false, any_traced_ = false, any_captured_ = false;
  bool joining_ = false;  // what the model asks is no part of the recording
  unsigned depth_ = 0, compared_ = 0, states_ = 0;
  const Peer* heard_ = nullptr;  // the model waits for what comes from there
};

}  // namespace hcasim::api
#endif
