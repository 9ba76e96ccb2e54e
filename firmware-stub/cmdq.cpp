// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/cmdq.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "firmware-stub/firmware.h"
#include "firmware-stub/validate.h"
#include "model/device.h"
#include "prm/eqe.h"

namespace hcasim::fw {

using prm::CmdDelivery;
using prm::CmdEntry;
using prm::CmdMailbox;
using traces::Rule;
using traces::RuleObject;

namespace {

constexpr std::size_t kInline = sizeof(CmdEntry::in);
constexpr std::size_t kBlock = sizeof(CmdMailbox::data);
constexpr std::uint64_t kMailboxAlign = 0x1ff;  // low bits of a mailbox pointer that must be zero
constexpr std::size_t kMaxTraced = 4096 + 16;

std::uint8_t xor8(const void* bytes, std::size_t len) {
  std::uint8_t x = 0;
  for (std::size_t i = 0; i < len; ++i) x ^= static_cast<const std::uint8_t*>(bytes)[i];
  return x;
}

template <std::size_t N>
bool all_zero(const std::uint8_t (&bytes)[N]) {
  std::uint8_t any = 0;
  for (const std::uint8_t b : bytes) any = static_cast<std::uint8_t>(any | b);
  return any == 0;
}

std::size_t blocks(std::size_t len) { return len <= kInline ? 0 : (len - kInline + kBlock - 1) / kBlock; }

// Checks of one mailbox block (device.h mlx5_cmd_prot_block). Signatures: the exclusive or of all bytes that
// one covers, itself included, is 0xff.
CmdDelivery check_block(const CmdMailbox& box, std::size_t index, std::uint8_t token, bool checksum) {
  if (box.token != token) return CmdDelivery::kToken;
  if (box.block_num != index) return CmdDelivery::kBadBlockNum;
  if (checksum) {
    constexpr std::size_t from = offsetof(CmdMailbox, rsvd0), to = offsetof(CmdMailbox, sig);
    if (xor8(box.rsvd0, to - from) != 0xff) return CmdDelivery::kSignature;
    if (xor8(&box, sizeof box) != 0xff) return CmdDelivery::kSignature;
  }
  return CmdDelivery::kOk;
}

}  // namespace

CmdQueue::CmdQueue(const sc_core::sc_module_name& name, Firmware& fw)
    : sc_module(name),
      fw_(fw),
      work_(
          "work", [this](Time due, unsigned& slot) { execute(due, slot); }, fw.function().health()) {}

void CmdQueue::set_address_low(std::uint32_t v) {
  // A new queue is empty. What another driver that never shut down (one that crashed) has left in the old one
  // would be answered into this one, and would take slots of it.
  for (auto& job : jobs_) job.reset();
  work_.clear();
  held_ = 0;
  address_ = std::uint64_t{new_high_} << 32 | v;
  excused_ = false;
}

void CmdQueue::doorbell(std::uint32_t vector) {
  if (address_ == 0 || fw_.health().nic_interface() != 0) {
    ++counters_.bad_doorbells;
    if (address_ == 0 && !excused_)
      fw_.tracer().broke_value(Rule::kCmdqEarly, sim_now(), RuleObject::kNone, 0, vector);
    return;
  }
  if (fw_.function().qps().suspension.initiator) {
    held_ |= vector;
    return;
  }
  for (unsigned slot = 0; slot < kSlots; ++slot)
    if ((vector >> slot & 1) != 0) fetch(slot);
}

bool CmdQueue::busy() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const std::unique_ptr<Job>& job) {
    return job && !job->waiting && !job->lost && !job->stalled;
  });
}

void CmdQueue::go_on() {
  pages_changed();
  if (const std::uint32_t held = std::exchange(held_, 0); held != 0) doorbell(held);
}

void CmdQueue::loaded() {
  for (const std::unique_ptr<Job>& job : jobs_)
    if (job) job->waiting = !job->lost;
}

void CmdQueue::Job::find_row() { opcode = find_opcode(cmd.opcode); }

bool CmdQueue::Job::sound() const {
  if (cmd.in_len > kMaxInput || cmd.in.size() > kMaxInput || cmd.out_len > kMaxOutput ||
      cmd.out.size() > kMaxOutput)
    return false;
  return delivery != CmdDelivery::kOk ||
         (cmd.in.size() >= cmd.in_len && out_blocks.size() == blocks(cmd.out_len));
}

void CmdQueue::fetch(unsigned slot) {
  if (jobs_[slot]) {  // still in progress: a second doorbell for it means nothing
    ++counters_.bad_doorbells;
    fw_.tracer().broke(Rule::kCmdqBusySlot, sim_now(), RuleObject::kSlot, slot);
    return;
  }
  auto job = std::make_unique<Job>();
  Device& device = fw_.device();
  Time t = sim_now() + device.profile().pcie.mmio_latency;
  const std::uint64_t at = address_ + (std::uint64_t{slot} << kLogStride);
  const ReadDone entry = device.dma().read(t, at, &job->entry, sizeof job->entry, Space::kHost,
                                           {WriteOwner::kFirmware, fw_.function().id(), slot});
  if (!entry.ok || (job->entry.status_own & CmdEntry::kOwnerHw) == 0) {
    ++counters_.bad_doorbells;
    if (entry.ok)
      fw_.tracer().broke(Rule::kCmdqOwnership, t, RuleObject::kSlot, slot, &job->entry, sizeof job->entry);
    return;
  }
  t = entry.at;
  const CmdEntry& e = job->entry;
  if ((e.rsvd0[0] | e.rsvd0[1] | e.rsvd0[2] | e.rsvd1) != 0)
    fw_.tracer().broke(Rule::kCmdqReserved, t, RuleObject::kSlot, slot, &e, sizeof e);
  job->checksum = fw_.caps().get<prm::cmd_hca_cap::cmdif_checksum>() != 0;
  job->cmd.slot = slot;
  job->cmd.seq = new_seq();
  ++counters_.commands;

  job->delivery = read_input(*job, t);
  if (job->delivery == CmdDelivery::kOk) job->delivery = read_output_chain(*job, t);

  Command& cmd = job->cmd;
  if (cmd.in.size() >= 8) {
    cmd.opcode = static_cast<std::uint16_t>(prm::load32(cmd.in.data()) >> 16);
    cmd.uid = static_cast<std::uint16_t>(prm::load32(cmd.in.data()));
    cmd.op_mod = static_cast<std::uint16_t>(prm::load32(cmd.in.data() + 4));
  }
  job->find_row();
  fw_.tracer().record_blob(traces::Point::kCmdStart, t, slot, cmd.seq,
                           cmd.opcode | std::uint64_t{cmd.op_mod} << 16 | std::uint64_t{cmd.uid} << 32,
                           cmd.in_len, cmd.in.data(), std::min(cmd.in.size(), kMaxTraced));
  // Whether the answer comes with an event is settled now: the driver that makes (or takes away) the EQ for
  // command events waits for this very command by polling.
  fw_.objects().eqs.for_each([&](std::uint32_t eqn, const EqObject& eq) {
    if ((eq.mask[0] >> static_cast<unsigned>(prm::EqeType::kCmd) & 1) != 0) job->event_eqns.push_back(eqn);
  });
  std::sort(job->event_eqns.begin(), job->event_eqns.end());

  strike(*job, t);
  if (job->lost) {  // the slot stays the firmware's
    jobs_[slot] = std::move(job);
    return;
  }

  const Profile::Firmware& cost = device.profile().firmware;
  Time service =
      job->opcode != nullptr && job->opcode->time == TimeClass::kObject ? cost.object : cost.command;
  service += static_cast<Time>(blocks(cmd.in_len) + job->out_blocks.size()) * cost.command_mailbox;
  free_at_ = std::max(t, free_at_) + service;
  const Time due = free_at_ + job->fault_delay;
  jobs_[slot] = std::move(job);
  work_.push(due, slot);
}

void CmdQueue::strike(Job& job, Time t) {
  Injector& injector = fw_.device().injector();
  const Command& cmd = job.cmd;
  const std::uint64_t detail = cmd.seq | std::uint64_t{cmd.opcode} << 32;
  const FaultSpec* fault = nullptr;
  if (injector.armed(FaultType::kCommand))
    fault = injector.strike(FaultType::kCommand, t,
                            {{FaultKey::kOpcode, cmd.opcode}, {FaultKey::kOpMod, cmd.op_mod}},
                            {fw_.function().id(), cmd.slot}, detail);
  constexpr std::uint16_t kGive = 1;  // op_mod
  if (!fault && injector.armed(FaultType::kPageRequest) && cmd.opcode == prm::op::MANAGE_PAGES &&
      cmd.op_mod == kGive)
    fault = injector.strike(FaultType::kPageRequest, t, {}, {fw_.function().id(), cmd.slot}, detail,
                            {FaultAction::kPagesRefused});
  if (!fault) return;
  job.lost = fault->action == FaultAction::kNever;
  job.no_event = fault->action == FaultAction::kNoEvent;
  job.fault_delay = fault->time(FaultKey::kDelay);
  job.fault_status = static_cast<std::uint8_t>(fault->value(FaultKey::kStatus));
  job.fault_syndrome = static_cast<std::uint32_t>(fault->value(FaultKey::kSyndrome));
}

CmdDelivery CmdQueue::read_input(Job& job, Time& t) {
  const CmdEntry& e = job.entry;
  if (e.type != CmdEntry::kPci) return CmdDelivery::kBadType;
  // Linux signs the entry always and mailbox blocks when cmdif_checksum is on; rdma-core's VFIO driver, which
  // turns that off, signs nothing, and OpenBSD's mcx, which never turns it on, otherwise.
  const bool is_signed = e.sig != 0 || job.checksum;
  if (is_signed && xor8(&e, sizeof e) != 0xff) {
    if (job.checksum) return CmdDelivery::kSignature;
    fw_.tracer().broke_value(Rule::kCmdqSignature, t, RuleObject::kSlot, job.cmd.slot, e.sig);
  }
  const std::uint32_t len = e.inlen;
  if (len < 8 || len > kMaxInput) return CmdDelivery::kInLength;
  // Grows as the chain is read: a length alone does not get memory.
  Command& cmd = job.cmd;
  cmd.in_len = len;
  cmd.in.assign(e.in, e.in + std::min<std::size_t>(len, kInline));
  std::uint64_t next = e.in_ptr;
  CmdMailbox box;
  for (std::size_t i = 0; i < blocks(len); ++i) {  // by length: a chain may be longer, or a ring
    if (next == 0) {  // or shorter, as OpenBSD's mcx counts more than it sends: that is what there is
      fw_.tracer().broke_value(Rule::kCmdqInPointer, t, RuleObject::kSlot, cmd.slot, 0);
      cmd.in_len = cmd.in.size();
      break;
    }
    if ((next & kMailboxAlign) != 0) return CmdDelivery::kBadInPtr;
    const ReadDone r = fw_.device().dma().read(t, next, &box, sizeof box, Space::kHost,
                                               {WriteOwner::kFirmware, fw_.function().id(), job.cmd.slot});
    if (!r.ok) return CmdDelivery::kBadInPtr;
    t = r.at;
    const CmdDelivery d = check_block(box, i, e.token, job.checksum);
    if (d != CmdDelivery::kOk) return d;
    if (!all_zero(box.rsvd0))
      fw_.tracer().broke(Rule::kCmdqMailboxReserved, t, RuleObject::kSlot, cmd.slot, box.rsvd0,
                         sizeof box.rsvd0);
    const std::size_t n = std::min(kBlock, len - cmd.in.size());
    cmd.in.insert(cmd.in.end(), box.data, box.data + n);
    next = box.next;
  }
  return CmdDelivery::kOk;
}

CmdDelivery CmdQueue::read_output_chain(Job& job, Time& t) {
  const CmdEntry& e = job.entry;
  const std::uint32_t len = e.outlen;
  if (len < 8 || len > kMaxOutput) return CmdDelivery::kOutLength;
  job.cmd.out_len = len;
  std::uint64_t next = e.out_ptr;
  CmdMailbox box;
  for (std::size_t i = 0; i < blocks(len); ++i) {
    if (next == 0 || (next & kMailboxAlign) != 0) return CmdDelivery::kBadOutPtr;
    const ReadDone r = fw_.device().dma().read(t, next, &box, sizeof box, Space::kHost,
                                               {WriteOwner::kFirmware, fw_.function().id(), job.cmd.slot});
    if (!r.ok) return CmdDelivery::kBadOutPtr;
    t = r.at;
    const CmdDelivery d = check_block(box, i, e.token, false);
    if (d != CmdDelivery::kOk) return d;
    job.out_blocks.push_back(next);
    next = box.next;
  }
  return CmdDelivery::kOk;
}

void CmdQueue::execute(Time t, unsigned slot) {
  Job* job = jobs_[slot].get();
  if (job == nullptr) return;
  if (fw_.health().stalled()) {
    job->stalled = true;
    return;
  }
  Syndrome syndrome = Syndrome::kOk;
  if (job->delivery == CmdDelivery::kOk && fw_.health().is_fatal()) job->delivery = CmdDelivery::kFwErr;
  if (job->delivery == CmdDelivery::kOk && job->fault_status == 0) {
    job->cmd.now = t;
    try {
      syndrome = dispatch(job->cmd, job->opcode);
    } catch (const std::bad_alloc&) {
      syndrome = Syndrome::kNoMemory;
    } catch (const std::exception& ex) {
      fw_.device().model_fault("firmware", ex.what());
      syndrome = Syndrome::kFirmwareFatal;
    }
    if (syndrome == Syndrome::kWaitPages) {
      if (fw_.pages().request_now(t)) {
        job->waiting = true;
        return;
      }
      syndrome = Syndrome::kNoPages;
    }
    if (syndrome == Syndrome::kLater) {
      work_.push(std::max(job->cmd.next, t), slot);
      return;
    }
    if (syndrome == Syndrome::kWaitHost) {  // until it has answered: pages_changed()
      job->waiting = true;
      return;
    }
  }
  answer(t, slot, syndrome);
  // What the command used up may be due for replacement; asked for behind its answer.
  fw_.pages().request_if_low(t);
}

void CmdQueue::resume() {
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    if (!jobs_[slot] || !jobs_[slot]->stalled) continue;
    jobs_[slot]->stalled = false;
    free_at_ = std::max(sim_now(), free_at_) + fw_.device().profile().firmware.command;
    work_.push(free_at_, slot);
  }
}

void CmdQueue::pages_changed() {
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    Job* job = jobs_[slot].get();
    if (job == nullptr || !job->waiting) continue;
    job->waiting = false;
    free_at_ = std::max(sim_now(), free_at_) + fw_.device().profile().firmware.object;
    work_.push(free_at_, slot);
  }
}

Syndrome CmdQueue::dispatch(Command& cmd, const Opcode* op) {
  cmd.out.assign(std::max<std::size_t>(cmd.out_len, op != nullptr ? op->whole_out : 16), 0);
  if (op == nullptr) {
    ++counters_.unknown_opcodes;
    return Syndrome::kUnknownOpcode;
  }
  if (op->offered != nullptr && !op->offered(fw_.caps())) return Syndrome::kNotOffered;
  if (cmd.in_len < op->min_in) return Syndrome::kInputShort;
  if (cmd.out_len < op->min_out) return Syndrome::kOutputShort;
  if (cmd.in.size() < op->whole_in) cmd.in.resize(op->whole_in);
  if (!op->allowed(fw_.state())) {
    if (fw_.state() == State::kOff) return Syndrome::kNotEnabled;
    return fw_.state() == State::kEnabled ? Syndrome::kNotInitialized : Syndrome::kInitialized;
  }
  validate_input(fw_, cmd);
  if (cmd.uid != 0 && cmd.uid != kSharedUid) {
    const Syndrome access = check_access(fw_, cmd, op->users);
    if (access != Syndrome::kOk) return access;
  }
  return op->handler(fw_, cmd);
}

// What lies in the queue is still what was taken from it.
void CmdQueue::check_entry(Time t, const Job& job, std::uint64_t at) {
  Device& device = fw_.device();
  CmdEntry now;
  if (!fw_.tracer().rules().on() || !device.dma().peek(fw_.function().id(), at, &now, sizeof now)) return;
  constexpr std::size_t in_end = offsetof(CmdEntry, out), rest = offsetof(CmdEntry, out_ptr);
  if (std::memcmp(&now, &job.entry, in_end) == 0 &&
      std::memcmp(reinterpret_cast<const std::uint8_t*>(&now) + rest,
                  reinterpret_cast<const std::uint8_t*>(&job.entry) + rest, sizeof now - rest) == 0)
    return;
  fw_.tracer().broke(Rule::kCmdqChanged, t, RuleObject::kSlot, job.cmd.slot, &now, sizeof now);
}

void CmdQueue::answer(Time t, unsigned slot, Syndrome syndrome) {
  // Taken out first: a handler may have reset the function, and the slot is the driver's once it is answered.
  const std::unique_ptr<Job> job = std::move(jobs_[slot]);
  if (!job) return;
  Device& device = fw_.device();
  Command& cmd = job->cmd;
  CmdEntry& e = job->entry;
  const WriteOwner owner{WriteOwner::kFirmware, fw_.function().id(), slot};
  const std::uint64_t at = address_ + (std::uint64_t{slot} << kLogStride);
  const bool injected = job->fault_status != 0;
  const std::uint8_t status = injected ? job->fault_status : static_cast<std::uint8_t>(status_of(syndrome));
  const std::uint32_t number = injected ? job->fault_syndrome : static_cast<std::uint32_t>(syndrome);
  check_entry(t, *job, at);
  if (job->delivery != CmdDelivery::kOk) {
    if (const Rule rule = rule_of(job->delivery); rule != Rule::kCount)
      fw_.tracer().broke(rule, t, RuleObject::kSlot, slot, &e, sizeof e);
  } else if (syndrome != Syndrome::kOk) {
    validate_refused(fw_, cmd, job->opcode, syndrome);
  }

  if (job->delivery == CmdDelivery::kOk) {
    if (status != 0) {
      ++counters_.failed;
      if (status == static_cast<std::uint8_t>(prm::CmdStatus::kLim)) ++counters_.over_limit;
      // A failed command answers with its status alone.
      if (injected) cmd.out.resize(std::max<std::size_t>(cmd.out_len, 16));  // no handler has made it
      std::fill(cmd.out.begin(), cmd.out.end(), std::uint8_t{0});
      cmd.out[0] = status;
      prm::store32(cmd.out.data() + 4, number);
      fw_.say(t, TraceString::kCommandRefused,
              {fw_.options().vhca_id, cmd.opcode, cmd.op_mod, status, number});
    }
    std::size_t off = std::min(cmd.out_len, kInline);
    std::memcpy(e.out, cmd.out.data(), off);
    for (const std::uint64_t block : job->out_blocks) {
      const std::size_t n = std::min(kBlock, cmd.out_len - off);
      device.dma().post_write(t, block, cmd.out.data() + off, static_cast<std::uint32_t>(n), owner, true);
      off += n;
    }
    device.dma().post_write(t, at + offsetof(CmdEntry, out), e.out, sizeof e.out, owner, true);
  } else {
    ++counters_.bad_deliveries;
    fw_.say(t, TraceString::kCommandBad,
            {fw_.options().vhca_id, cmd.opcode, static_cast<std::uint32_t>(job->delivery)});
    fw_.tracer().record(traces::Point::kCmdBad, t, slot, cmd.seq, static_cast<std::uint64_t>(job->delivery),
                        0);
  }
  e.status_own = static_cast<std::uint8_t>(static_cast<unsigned>(job->delivery) << 1);
  // The owner bit by itself: a driver that polls must not see it before the output.
  const Time seen = device.dma().post_write(t, at + offsetof(CmdEntry, status_own), &e.status_own, 1, owner);

  fw_.tracer().record_blob(traces::Point::kCmdDone, t, slot, cmd.seq,
                           cmd.opcode | std::uint64_t{status} << 16 |
                               std::uint64_t{static_cast<std::uint8_t>(job->delivery)} << 24,
                           number | std::uint64_t{cmd.out_len} << 32, cmd.out.data(),
                           std::min({cmd.out.size(), cmd.out_len, kMaxTraced}));
  if (job->no_event) return;
  prm::EqeCmd event{};
  event.vector = 1u << slot;
  for (const std::uint32_t eqn : job->event_eqns)
    device.eqs().to_eq(seen, fw_.function().id(), eqn, static_cast<std::uint8_t>(prm::EqeType::kCmd), 0,
                       &event, sizeof event);
}

}  // namespace hcasim::fw
