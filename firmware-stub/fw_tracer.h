// SPDX-License-Identifier: BSD-3-Clause
// The firmware's tracer (registers MTRC_*): messages of the firmware, written as entries of a few words into
// a ring in host memory that the driver lends it by a key. A message is the address of its text in the string
// database, and its values. Linux shows them as the trace event mlx5_fw, and in the dump of the health
// reporter `fw`.
//
//   MTRC_CAP: owner -> MTRC_CONF: the ring -> MTRC_CTRL: on, armed
//   messages -> a block -> event TRACES_AVAILABLE -> the driver reads blocks, and arms again
//
// One owner at a time: the driver, or a tool by the mailbox; when a tool lets go the driver hears of it
// (OWNERSHIP_CHANGE).
#ifndef HCASIM_FIRMWARE_STUB_FW_TRACER_H
#define HCASIM_FIRMWARE_STUB_FW_TRACER_H

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <systemc>

#include "firmware-stub/syndromes.h"
#include "model/pcie/dma.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "prm/fw_tracer.h"

namespace hcasim::fw {

class Firmware;

enum class TraceString : std::uint8_t {
#define X(name, values, text) k##name,
#include "firmware-stub/trace_strings.def"
#undef X
  kCount
};

class FwTracer : public sc_core::sc_module {
 public:
  enum class Owner : std::uint8_t { kNobody, kDriver, kTools };
  static constexpr std::uint32_t kStringBase = 0x100000;  // of the string database, in the firmware's memory
  static constexpr unsigned kFirstEvent = 1;              // event_id of its messages: one processor
  static constexpr unsigned kLogMaxPages = 10;            // of the ring
  static constexpr unsigned kMaxValues = 7;

  FwTracer(const sc_core::sc_module_name& name, Firmware& fw);

  // A message, from t on; without a ring it is for nobody.
  void say(Time t, TraceString what, std::initializer_list<std::uint32_t> values);
  // What the firmware is made of and has done, as messages. They are on their way into the ring ahead of what
  // `owner` posts next.
  void dump_core(Time t, WriteOwner owner);

  Owner owner() const { return owner_; }
  bool acquire(Owner who);  // false: another one has it
  void release(Time t, Owner who);
  // The ring: 2^log_pages pages of 4 KiB, from the key's first byte on.
  Syndrome configure(std::uint32_t wire_key, unsigned log_pages);
  Syndrome turn(Time t, bool on);
  void arm(Time t);
  bool on() const { return on_; }
  bool armed() const { return armed_; }
  std::uint32_t key() const { return key_; }
  unsigned log_pages() const { return log_pages_; }
  static std::uint64_t ticks(Time t);  // of time stamps: ns, 53 bits

  // The string database; a multiple of 64 bytes long.
  static const std::string& strings();

  std::uint64_t said() const { return said_; }
  std::uint64_t lost() const { return lost_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, due_, owner_, on_, armed_, unheard_, gap_, key_, log_pages_, start_, block_, entries_,
                  number_, group_, stamp_);
    if constexpr (Archive::kLoads)
      a.check(log_pages_ <= kLogMaxPages && entries_.size() <= prm::kTraceBlockEntries,
              "the ring is too large");
    a.lasting("said", said_);
    a.lasting("lost", lost_);
    a.lasting("blocks", blocks_);
  }

 private:
  using Entry = std::uint64_t;
  void write_out(Time t, WriteOwner owner);
  void stop();
  void tell(Time t);
  void post(Time t, std::uint8_t what);

  Firmware& fw_;
  TimedQueue<std::uint64_t> due_;  // blocks, by number, that are to be written even if they are not full
  Owner owner_ = Owner::kNobody;
  bool on_ = false;
  bool armed_ = false;
  bool unheard_ = false;  // a block has been written since the last event
  bool gap_ = false;      // messages were lost since the last one
  std::uint32_t key_ = 0;
  unsigned log_pages_ = 0;
  std::uint64_t start_ = 0;     // of the ring
  std::uint64_t block_ = 0;     // free-running number of the block that is being filled
  std::vector<Entry> entries_;  // of that block
  std::uint32_t number_ = 0;    // of the next message
  std::uint64_t group_ = 0;     // ticks of the last message ...
  std::uint64_t stamp_ = 0;     // ... and of the last time stamp
  std::uint64_t said_ = 0, lost_ = 0, blocks_ = 0;
};

}  // namespace hcasim::fw
#endif
