// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/fw_tracer.h"

#include <algorithm>

#include "firmware-stub/firmware.h"
#include "firmware-stub/key_memory.h"
#include "prm/eqe.h"

namespace hcasim::fw {

namespace {

// How long a block waits for more messages: a burst of them is one event.
constexpr Time kLinger = from_ns(100'000);
// The first one: Linux forgets the time of the last block that it has read only when it has turned the tracer
// on, and takes a block that it hears of before that for one that has come after others were lost.
constexpr Time kFirstLinger = from_ns(10'000'000);
constexpr std::uint64_t kTickMask = (std::uint64_t{1} << 53) - 1;
constexpr unsigned kWindowBits = 7;  // of a message's own time stamp
constexpr std::size_t kStringAlign = 64;

struct Text {
  unsigned values;
  const char* text;
};
constexpr Text kTexts[] = {
#define X(name, values, text) {values, text},
#include "firmware-stub/trace_strings.def"
#undef X
};

// Where each text lies, and all of them. Drivers take no text for one that lies at the very beginning.
struct Strings {
  std::array<std::uint32_t, std::size(kTexts)> at{};
  std::string image = std::string(4, '\0');

  Strings() {
    for (std::size_t i = 0; i < std::size(kTexts); ++i) {
      at[i] = static_cast<std::uint32_t>(image.size());
      image.append(kTexts[i].text).push_back('\0');
    }
    image.resize((image.size() + kStringAlign - 1) / kStringAlign * kStringAlign);
  }
};

const Strings& all_strings() {
  static const Strings strings;
  return strings;
}

}  // namespace

FwTracer::FwTracer(const sc_core::sc_module_name& name, Firmware& fw)
    : sc_module(name),
      fw_(fw),
      due_(
          "due",
          [this](Time t, std::uint64_t& block) {
            if (block == block_) write_out(t, WriteOwner(fw_.function().id()));
          },
          fw.function().health()) {}

const std::string& FwTracer::strings() { return all_strings().image; }

std::uint64_t FwTracer::ticks(Time t) { return static_cast<std::uint64_t>(t / from_ns(1)) & kTickMask; }

bool FwTracer::acquire(Owner who) {
  if (owner_ != Owner::kNobody && owner_ != who) return false;
  owner_ = who;
  return true;
}

void FwTracer::release(Time t, Owner who) {
  if (owner_ != who) return;
  stop();
  owner_ = Owner::kNobody;
  if (who == Owner::kTools) post(t, prm::kTracerOwnership);
}

Syndrome FwTracer::configure(std::uint32_t wire_key, unsigned log_pages) {
  if (on_) return Syndrome::kTracerState;
  if (log_pages > kLogMaxPages) return Syndrome::kTracerRing;
  const auto start = key_start(fw_, wire_key);
  if (!start || !key_covers(fw_, wire_key, *start, prm::kTracePageBytes << log_pages))
    return Syndrome::kTracerRing;
  key_ = wire_key;
  log_pages_ = log_pages;
  start_ = *start;
  return Syndrome::kOk;
}

Syndrome FwTracer::turn(Time t, bool on) {
  if (!on) {
    stop();
    return Syndrome::kOk;
  }
  if (key_ == 0) return Syndrome::kTracerState;
  if (on_) return Syndrome::kOk;
  on_ = true;
  block_ = 0;
  const FirmwareVersion& v = fw_.image().running();
  say(t, TraceString::kTracerOn, {v.major, v.minor, v.subminor});
  return Syndrome::kOk;
}

void FwTracer::stop() {
  on_ = armed_ = unheard_ = false;
  entries_.clear();
  due_.clear();
}

void FwTracer::arm(Time t) {
  armed_ = true;
  if (unheard_) tell(t);
}

void FwTracer::tell(Time t) {
  armed_ = unheard_ = false;
  post(t, prm::kTracerTraces);
}

void FwTracer::post(Time t, std::uint8_t what) {
  constexpr std::uint8_t nothing[4] = {};  // the sub type says it all
  fw_.device().eqs().post(t, fw_.function().id(), static_cast<std::uint8_t>(prm::EqeType::kDeviceTracer),
                          what, nothing, sizeof nothing);
}

namespace {

std::uint64_t stamp(std::uint64_t ticks) {
  using e = prm::tracer_timestamp_event;
  std::uint8_t bytes[e::bytes] = {};
  prm::set<e::timestamp7_0>(bytes, static_cast<std::uint32_t>(ticks & 0xff));
  prm::set<e::event_id>(bytes, prm::kTraceTimestamp);
  prm::set<e::timestamp52_40>(bytes, static_cast<std::uint32_t>(ticks >> 40));
  prm::set<e::timestamp39_8>(bytes, static_cast<std::uint32_t>(ticks >> 8));
  return prm::load64(bytes);
}

}  // namespace

void FwTracer::say(Time t, TraceString what, std::initializer_list<std::uint32_t> values) {
  if (!on_) return;
  // A time stamp is that of the last message before it plus one, and grows from block to block: so drivers
  // find each message's time exactly, and no block is taken for one that has been read.
  std::uint64_t now = std::max({ticks(t), group_, stamp_});
  const bool apart = !entries_.empty() && now >> kWindowBits != group_ >> kWindowBits;
  if (entries_.size() + (apart ? 1 : 0) + 1 + values.size() >= prm::kTraceBlockEntries) {
    write_out(t, WriteOwner(fw_.function().id()));
    if (!on_) return;
    now = std::max(now, stamp_);
  } else if (apart) {
    entries_.push_back(stamp(group_ + 1));
  }
  if (entries_.empty()) due_.push(t + (block_ == 0 ? kFirstLinger : kLinger), block_);
  using e = prm::tracer_string_event;
  std::uint8_t bytes[e::bytes] = {};
  prm::set<e::lost>(bytes, gap_ ? 1 : 0);
  prm::set<e::timestamp>(bytes, static_cast<std::uint32_t>(now) & ((1u << kWindowBits) - 1));
  prm::set<e::event_id>(bytes, kFirstEvent);
  prm::set<e::tmsn>(bytes, number_++);
  prm::set<e::string_param>(bytes, kStringBase + all_strings().at[static_cast<std::size_t>(what)]);
  entries_.push_back(prm::load64(bytes));
  std::uint32_t serial = 0;
  for (const std::uint32_t value : values) {
    prm::set<e::tdsn>(bytes, ++serial);
    prm::set<e::string_param>(bytes, value);
    entries_.push_back(prm::load64(bytes));
  }
  group_ = now;
  gap_ = false;
  ++said_;
}

void FwTracer::write_out(Time t, WriteOwner owner) {
  if (!on_ || entries_.empty()) return;
  stamp_ = group_ + 1;
  entries_.resize(prm::kTraceBlockEntries, stamp(stamp_));
  std::array<std::uint8_t, prm::kTraceBlockBytes> bytes;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    prm::store64(bytes.data() + i * prm::kTraceEntryBytes, entries_[i]);
  entries_.clear();
  const std::uint64_t blocks = (prm::kTracePageBytes << log_pages_) / prm::kTraceBlockBytes;
  const std::uint64_t at = start_ + block_ % blocks * prm::kTraceBlockBytes;
  const auto written = write_by_key(fw_, t, key_, at, bytes.data(), bytes.size(), owner);
  if (!written) {  // the driver has taken its key back
    ++lost_;
    gap_ = true;
    stop();
    return;
  }
  ++block_;
  ++blocks_;
  unheard_ = true;
  if (armed_) tell(*written);
}

void FwTracer::dump_core(Time t, WriteOwner owner) {
  const CmdQueue::Counters& c = fw_.cmdq().counters();
  const Objects& o = fw_.objects();
  const auto low = [](auto v) { return static_cast<std::uint32_t>(v); };
  say(t, TraceString::kCoreFunction,
      {fw_.options().vhca_id, low(fw_.state()), low(t / from_ns(1'000'000)), fw_.health().syndrome()});
  say(t, TraceString::kCoreCommands,
      {low(c.commands), low(c.failed), low(c.bad_deliveries), low(c.unknown_opcodes)});
  say(t, TraceString::kCorePages,
      {low(fw_.pages().given()), low(fw_.pages().used_pages()), low(fw_.pages().requests())});
  say(t, TraceString::kCoreQueues,
      {low(o.eqs.count()), low(o.cqs.count()), low(o.qps.count()), low(o.rqs.count()), low(o.srqs.count())});
  say(t, TraceString::kCoreMemory, {low(o.pds.count()), low(o.mkeys.count()), low(o.users.table.count())});
  say(t, TraceString::kCoreErrors,
      {low(fw_.device().qp_errors()), low(fw_.device().eqs().overruns()), low(fw_.device().dma().errors())});
  say(t, TraceString::kCoreTracer, {low(said_), low(lost_), low(blocks_)});
  write_out(t, owner);
}

}  // namespace hcasim::fw
