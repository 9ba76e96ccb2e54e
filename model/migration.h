// SPDX-License-Identifier: BSD-3-Clause
// Holds a function for its migration, and lets it go on. First it begins nothing any more: its send queues
// get no turns, and their acknowledgement timers rest; it answers peers as ever. Then it does not answer
// either: what comes for it is lost as on a cable, and the transports send it again. Once it is at rest the
// engines have nothing of it in hand, and all that it is lies in its own tables, without a time in it: so it
// may go on at once, or another function that has been given the same tables.
#ifndef HCASIM_MODEL_MIGRATION_H
#define HCASIM_MODEL_MIGRATION_H

#include <cstdint>

#include "model/function/function.h"
#include "model/time.h"

namespace hcasim {

class ContextGate;
class CqUnit;
class Dma;
class EqUnit;
class EthRx;
class PageFaults;
class Requester;
class Responder;
class Scheduler;
class Tpt;

class Migration {
 public:
  struct Blocks {
    Functions& functions;
    Dma& dma;
    Scheduler& scheduler;
    Requester& requester;
    Responder& responder;
    ContextGate& contexts;
    CqUnit& cqs;
    EqUnit& eqs;
    Tpt& tpt;
    PageFaults& page_faults;
    EthRx& eth_rx;
  };
  explicit Migration(const Blocks& blocks) : blocks_(blocks) {}

  const Suspension& of(FunctionId f) const { return blocks_.functions[f].qps().suspension; }

  void hold_initiator(FunctionId f);
  void hold_responder(FunctionId f);
  // What the engines put off for a moment (acknowledgements, compressed CQEs) has come out by then.
  static constexpr Time kSettling = from_ns(3000);
  // Both are held, and kSettling is over.
  void bring_to_rest(FunctionId f);
  // Its tables have been filled with what another function at rest had.
  void loaded(FunctionId f);
  // The same with what it had itself a moment ago.
  void restored(FunctionId f);
  void free_responder(FunctionId f);
  void free_initiator(FunctionId f);

  // True: it is held, and is told when it goes on.
  bool misses_port_event(FunctionId f, std::uint8_t subtype);
  // True: the store to its UAR pages is lost. Those that name a send queue are not, as they only say that
  // there is work.
  bool misses_doorbell(FunctionId f, std::uint64_t offset, const std::uint8_t* bytes, unsigned len);

 private:
  Suspension& suspension(FunctionId f) { return blocks_.functions[f].qps().suspension; }
  void forget_times(Function& function);

  Blocks blocks_;
};

}  // namespace hcasim
#endif
