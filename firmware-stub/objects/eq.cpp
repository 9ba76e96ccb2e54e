// SPDX-License-Identifier: BSD-3-Clause
// CREATE_EQ, DESTROY_EQ, QUERY_EQ.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/ring.h"

namespace hcasim::fw {

namespace {
constexpr std::uint64_t kEqeBytes = 64;
constexpr std::uint32_t kEqcOverflow = 0xa, kEqcArmed = 0x9, kEqcFired = 0xa;
}  // namespace

Syndrome create_eq(Firmware& fw, Command& cmd) {
  using in = prm::create_eq_in;
  using c = in::eq_context_entry;
  Objects& o = fw.objects();
  const unsigned log_size = cmd.get<c::log_eq_size>();
  if (log_size > fw.caps().get<prm::cmd_hca_cap::log_max_eq_sz>()) return Syndrome::kEqSize;
  if (o.uars.find(cmd.get<c::uar_page>()) == nullptr) return Syndrome::kUarNumber;
  const unsigned vector = cmd.get<c::intr>();
  if (vector >= fw.vectors()) return Syndrome::kEqVector;
  GuestRing ring;
  const Syndrome s = read_ring(fw, cmd, in::pas::bit_off / 8, cmd.get<c::log_page_size>(),
                               cmd.get<c::page_offset>(), kEqeBytes << log_size, Syndrome::kEqPages, ring);
  if (s != Syndrome::kOk) return s;
  if (o.eqs.full()) return Syndrome::kEqLimit;
  if (!fw.pages().charge(kIcmEq)) return Syndrome::kWaitPages;

  std::uint32_t eqn = 0;
  EqObject* object = o.eqs.create(eqn);
  Eq* eq = fw.function().eqs().create(eqn);
  if (eq == nullptr) {
    o.eqs.destroy(eqn);
    fw.pages().release(kIcmEq);
    return Syndrome::kEqLimit;
  }
  std::memcpy(object->eqc.data(), prm::ptr<c>(cmd.in.data()), object->eqc.size());
  for (unsigned i = 0; i < object->mask.size(); ++i)
    object->mask[i] = prm::get<in::event_bitmask>(cmd.in.data(), i);
  o.take_list(ring.pages.size());
  eq->ring = std::move(ring);
  eq->log_size = log_size;
  eq->vector = vector;
  eq->uar_page = cmd.get<c::uar_page>();
  eq->overrun_ignore = cmd.get<c::oi>() != 0;
  eq->mask = object->mask;
  cmd.put<prm::create_eq_out::eq_number>(eqn);
  fw.trace_create(ObjType::kEq, eqn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome destroy_eq(Firmware& fw, Command& cmd) {
  const std::uint32_t eqn = cmd.get<prm::destroy_eq_in::eq_number>();
  const EqObject* object = fw.objects().eqs.find(eqn);
  if (object == nullptr) return Syndrome::kEqNumber;
  if (object->referred()) return Syndrome::kEqBusy;
  fw.device().dma().flush(fw.function().id());
  if (const Eq* eq = fw.function().eqs().find(eqn)) fw.objects().return_list(eq->ring.pages.size());
  fw.device().eqs().destroy(fw.function().id(), eqn);
  fw.objects().eqs.destroy(eqn);
  fw.pages().release(kIcmEq);
  fw.trace_destroy(ObjType::kEq, eqn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_eq(Firmware& fw, Command& cmd) {
  using out = prm::query_eq_out;
  using c = out::eq_context_entry;
  const std::uint32_t eqn = cmd.get<prm::query_eq_in::eq_number>();
  const EqObject* object = fw.objects().eqs.find(eqn);
  const Eq* eq = fw.function().eqs().find(eqn);
  if (object == nullptr || eq == nullptr) return Syndrome::kEqNumber;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->eqc.data(), object->eqc.size());
  cmd.put<c::status>(eq->overrun ? kEqcOverflow : 0);
  cmd.put<c::st>(eq->armed ? kEqcArmed : kEqcFired);
  cmd.put<c::consumer_counter>(eq->consumer & 0xffffff);
  cmd.put<c::producer_counter>(eq->producer & 0xffffff);
  cmd.put<out::event_bitmask>(object->mask[0]);
  return Syndrome::kOk;
}

// The least time between a vector's interrupts (illumos and FreeBSD set it).
Syndrome config_int_moderation(Firmware& fw, Command& cmd) {
  using in = prm::config_int_moderation_in;
  using out = prm::config_int_moderation_out;
  constexpr Time kUs = from_ns(1000);
  if (cmd.op_mod > prm::k::CONFIG_INT_MODERATION_IN_OP_MOD_READ) return Syndrome::kOpMod;
  const std::uint32_t vector = cmd.get<in::int_vector>();
  if (vector >= fw.vectors()) return Syndrome::kEqVector;
  InterruptPace& pace = fw.function().interrupt_pace();
  if (cmd.op_mod == prm::k::CONFIG_INT_MODERATION_IN_OP_MOD_WRITE)
    pace.set(vector, cmd.get<in::min_delay>() * kUs);
  cmd.put<out::min_delay>(static_cast<std::uint32_t>(pace.of(vector) / kUs));
  cmd.put<out::int_vector>(vector);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
