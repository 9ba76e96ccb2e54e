// SPDX-License-Identifier: BSD-3-Clause
/// Records in words.
#include <fmt/format.h>

#include "prm/cmd_queue.h"
#include "prm/cqe.h"
#include "prm/eqe.h"
#include "prm/info.h"
#include "prm/packet.h"
#include "prm/wqe.h"
#include "traces/drops.h"
#include "traces/fault_list.h"
#include "traces/lro_end.h"
#include "traces/path.h"
#include "traces/rules.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

// "" or the packet, followed by `behind`. Frames of Ethernet queues have no BTH and 0 in its place, which
// also PSN 0 of a SEND_FIRST is: that is left out.
std::string packet_text(std::uint64_t a0, const char* behind) {
  if (a0 == 0) return "";
  const auto opcode = static_cast<std::uint8_t>(a0 >> 24);
  const char* name = prm::bth_op_name(static_cast<prm::BthOp>(opcode & prm::bth::kOpMask));
  return fmt::format("PSN {} {}{}", a0 & 0xffffff,
                     name != nullptr ? name : fmt::format("opcode {:#x}", opcode), behind);
}

std::string syndrome_text(std::uint64_t v) {
  const char* name = prm::cqe_syndrome_name(static_cast<prm::CqeSyndrome>(v & 0xff));
  return name != nullptr ? name : fmt::format("syndrome {:#x}", v & 0xff);
}

std::string command_status_text(std::uint64_t a0) {
  const auto status = static_cast<std::uint8_t>(a0 >> 16), delivery = static_cast<std::uint8_t>(a0 >> 24);
  const char* name = delivery != 0 ? prm::cmd_delivery_name(static_cast<prm::CmdDelivery>(delivery))
                                   : prm::cmd_status_name(static_cast<prm::CmdStatus>(status));
  const std::string text = name != nullptr ? name : fmt::format("{:#x}", delivery != 0 ? delivery : status);
  return delivery != 0 ? "not delivered, " + text : text;
}

const char* nak_text(std::uint64_t code) {
  switch (static_cast<prm::NakCode>(code & 0x1f)) {
    case prm::NakCode::kPsnSeqErr:
      return "PSN sequence error";
    case prm::NakCode::kInvalidReq:
      return "invalid request";
    case prm::NakCode::kRemoteAccess:
      return "remote access error";
    case prm::NakCode::kRemoteOp:
      return "remote operational error";
    case prm::NakCode::kInvalidRdReq:
      return "invalid RD request";
    default:
      return "unknown NAK";
  }
}

// Which register of a UAR page a refused store met.
const char* register_text(unsigned offset) {
  using namespace prm::uar;
  if (offset >= kSqDoorbell) return "send doorbell";
  if (offset >= kCqArm && offset < kCqArm + sizeof(prm::CqDoorbell)) return "CQ arm";
  if (offset == kEqArm) return "EQ arm";
  return offset == kEqUpdate ? "EQ update" : "no register";
}

std::string doorbell_text(const Record& r) {
  const auto object = static_cast<RuleObject>(r.index & 0xff);
  if (object == RuleObject::kNone)  // older than the field that tells of what the number is
    return fmt::format(
        "a doorbell, or the record of one, names nothing that may be rung: object {:#x}, at {:#x}, value "
        "{:#x}",
        r.obj, r.a0, r.a1);
  if (r.index >> 8 != 0)
    return fmt::format("the doorbell record of {} {:#x} at {:#x} holds a count that cannot be: {}",
                       object_name(object), r.obj, r.a0, r.a1);
  const std::uint64_t page = r.a0 / prm::uar::kPageBytes;
  const auto offset = static_cast<unsigned>(r.a0 % prm::uar::kPageBytes);
  std::string text = fmt::format(
      "{} doorbell at UAR page {:#x}, offset {:#x} ({}): value {:#x}",
      static_cast<Point>(r.point) == Point::kDoorbellOff ? "the interface is off: ignored" : "bad", page,
      offset, register_text(offset), r.a1);
  if (object == RuleObject::kUar && offset == prm::uar::kCqArm)
    text += fmt::format("; if it was 8 bytes, for CQ {:#x}", r.a1 & 0xffffff);
  if (object == RuleObject::kUar && offset >= prm::uar::kSqDoorbell)
    text += fmt::format("; if it was 8 bytes, for QP {:#x}", r.a1 >> 8 & 0xffffff);
  if (object != RuleObject::kUar) text += fmt::format(", for {} {:#x}", object_name(object), r.obj);
  return text;
}

std::string qp_error_text(const Record& r) {
  // States as in model/ctx/qp.h; an RQ's ERR is 3.
  if (r.a0 == 4)
    return fmt::format("QP {:#x} went to an error state by itself: SQ_ERR, as a WQE ended with {}",
                       r.obj & 0xffffff, syndrome_text(r.a1));
  const char* event = r.a1 != 0 ? prm::eqe_type_name(static_cast<prm::EqeType>(r.a1 & 0xff)) : nullptr;
  return fmt::format(
      "{} {:#x} went to an error state by itself: ERR{}", r.a0 == 3 ? "RQ" : "QP", r.obj & 0xffffff,
      r.a1 == 0 ? "" : fmt::format(", event {}", event != nullptr ? event : fmt::format("{:#x}", r.a1)));
}

std::string number_or(const char* name, std::uint64_t v) {
  return name != nullptr ? name : fmt::format("{:#x}", v);
}

}  // namespace

std::string time_text(std::int64_t ps) {
  const double ns = static_cast<double>(ps) / 1e3;
  if (ps < 1000000 && ps > -1000000) return fmt::format("{:.1f} ns", ns);
  if (ps < 1000000000 && ps > -1000000000) return fmt::format("{:.3f} us", ns / 1e3);
  return fmt::format("{:.3f} ms", ns / 1e6);
}

std::string place_of(const Record& r) {
  return r.function != 0 ? fmt::format("{}.{}", r.hca, unsigned{r.function}) : std::to_string(r.hca);
}

std::string in_words(const Record& r) {
  const std::uint32_t number = r.obj & 0xffffff;
  switch (r.p()) {
    case Point::kDoorbell:
      return fmt::format("doorbell of QP {:#x}: up to WQE counter {}, UAR page {}", number, r.a0, r.a1);
    case Point::kScheduled:
      return fmt::format("the scheduler gave the send queue its turn, {} WQEBBs to do", r.a0);
    case Point::kWqeFetch:
      return fmt::format("{} bytes of WQEs arrived from host memory", r.a0);
    case Point::kWqeParsed: {
      const char* name = prm::wqe_op_name(static_cast<prm::WqeOp>(r.a0 & 0xff));
      return fmt::format("decoded: {}, {} bytes, WQE counter {}", name != nullptr ? name : "unknown opcode",
                         r.a1, r.a0 >> 16 & 0xffff);
    }
    case Point::kTranslated:
      return fmt::format("{} elements translated, {} cache misses", r.a0, r.a1);
    case Point::kGathered:
      return fmt::format("{} bytes of payload read", r.a0);
    case Point::kPacketTxFirst:
      return fmt::format("first packet leaves: {}{} bytes", packet_text(r.a0, ", "), r.a1);
    case Point::kPacketTxLast:
      return fmt::format("last packet has left: {}{} in all", packet_text(r.a0, ", "), r.a1);
    case Point::kPacketRx:
      return fmt::format("a packet arrived: {}{} bytes", packet_text(r.a0, ", "), r.a1);
    case Point::kChecked:
      return fmt::format("accepted by QP {:#x}: {}", r.a1,
                         r.a0 != 0 ? packet_text(r.a0, "") : "PSN 0 SEND_FIRST");
    case Point::kRwqeFetch:
      return fmt::format("receive WQE {} taken from queue {:#x}", r.a0, r.a1);
    case Point::kScattered:
      return fmt::format("{} bytes are in memory (QP {:#x})", r.a0, r.a1);
    case Point::kAckTx:
      return fmt::format("acknowledge sent, PSN {}, AETH {:#x}", r.a0, r.a1);
    case Point::kAckRx:
      return fmt::format("acknowledge arrived, PSN {}, AETH {:#x}", r.a0, r.a1);
    case Point::kCqeWritten:
      return fmt::format("CQE in CQ {:#x}, index {}: {}", r.a0 & 0xffffff, r.a1 & 0xffffffff,
                         syndrome_text(r.a0 >> 32));
    case Point::kWqeDone:
      return fmt::format("complete: {}{}", syndrome_text(r.a0),
                         (r.a0 >> 8 & 1) != 0 ? "" : ", no CQE asked for");
    case Point::kReadReqRx:
      return fmt::format("READ request arrived, PSN {}, {} bytes", r.a0, r.a1);
    case Point::kReadRespTx:
      return fmt::format("READ response sent, PSN {}, {} bytes", r.a0, r.a1);
    case Point::kReadRespRx:
      return fmt::format("READ response arrived, PSN {}, {} bytes", r.a0, r.a1);
    case Point::kAtomicExec:
      return fmt::format("atomic on {:#x} executed; {:#x} was there", r.a0, r.a1);
    case Point::kCtxMiss:
      return fmt::format("context of {:#x} was not in the cache: {}", r.obj,
                         time_text(static_cast<std::int64_t>(r.a1)));
    case Point::kMkeyChanged:
      return fmt::format("key {:#x} {}: {} bytes from {:#x}, rights {:#x}", r.obj,
                         (r.index >> 8 & 1) != 0 ? "invalidated" : "registered", r.a1, r.a0, r.index & 0x1f);
    case Point::kNakTx:
      return fmt::format("NAK sent, PSN {}: {}", r.a0, nak_text(r.a1));
    case Point::kNakRx:
      return fmt::format("NAK arrived, PSN {}: {}", r.a0, nak_text(r.a1));
    case Point::kRnrTx:
      return fmt::format("RNR NAK sent, PSN {}: come again in {} us", r.a0, prm::rnr_timer_us(r.a1 & 0x1f));
    case Point::kRnrRx:
      return fmt::format("RNR NAK arrived, PSN {}: wait {} us", r.a0, prm::rnr_timer_us(r.a1 & 0x1f));
    case Point::kTimeout:
      return fmt::format("no acknowledge of PSN {} in time, {} retries left", r.a0, r.a1);
    case Point::kRetransmit:
      return fmt::format("sent again from PSN {}, {} packets", r.a0, r.a1);
    case Point::kDuplicate:
      return fmt::format("came again: PSN {}, {} expected", r.a0, r.a1);
    case Point::kSeqErr:
      return fmt::format("out of order: PSN {}, {} expected", r.a0, r.a1);
    case Point::kAccessErr:
      return fmt::format("memory access refused: key {:#x}, address {:#x}", r.a0, r.a1);
    case Point::kWqeErr:
      return fmt::format("error: {}, vendor syndrome {:#x}", syndrome_text(r.a0), r.a0 >> 8 & 0xff);
    case Point::kRwqeErr:
      return fmt::format("receive WQE {} of QP {:#x} ended with {}", r.index, number, syndrome_text(r.a0));
    case Point::kFlush:
      return fmt::format("flushed from the {} queue", r.a1 == 0 ? "send" : "receive");
    case Point::kPacketDrop: {
      const char* text = drop_reason_text(r.a1);
      return fmt::format("dropped{}{}: {}", r.a0 != 0 ? ", " : "", packet_text(r.a0, ""),
                         text != nullptr ? text : "unknown reason");
    }
    case Point::kQpError:
      return qp_error_text(r);
    case Point::kDoorbellBad:
    case Point::kDoorbellOff:
      return doorbell_text(r);
    case Point::kEqOverrun:
      return fmt::format("EQ {:#x} had no room for an event {}: producer {}, consumer {}", number,
                         number_or(prm::eqe_type_name(static_cast<prm::EqeType>(r.a1 & 0xff)), r.a1), r.index,
                         r.a0);
    case Point::kEqeWritten:
      return fmt::format("EQE in EQ {:#x}, index {}: {}, object {:#x}", number, r.index,
                         number_or(prm::eqe_type_name(static_cast<prm::EqeType>(r.a0 & 0xff)), r.a0 & 0xff),
                         r.a1);
    case Point::kMsix:
      return fmt::format("MSI-X vector {}, for EQ {:#x}", r.obj, r.a0);
    case Point::kCqConsumed:
      return fmt::format("the driver has consumed CQ {:#x} up to {}", number, r.index);
    case Point::kCqArmed:
      return fmt::format("the driver armed CQ {:#x} at {}{}", number, r.index,
                         r.a0 != 0 ? ", solicited only" : "");
    case Point::kCmdStart:
      return fmt::format("command {} ({}) taken from slot {}, {} bytes", r.index,
                         prm::opcode_name(static_cast<std::uint16_t>(r.a0)), r.obj, r.a1);
    case Point::kCmdDone:
      return fmt::format("command {} ({}) answered: {}{}", r.index,
                         prm::opcode_name(static_cast<std::uint16_t>(r.a0)), command_status_text(r.a0),
                         (r.a1 & 0xffffffff) != 0 ? fmt::format(", syndrome {:#x}", r.a1 & 0xffffffff) : "");
    case Point::kCmdBad:
      return fmt::format("command {} of slot {} could not be read or answered: {}", r.index, r.obj,
                         number_or(prm::cmd_delivery_name(static_cast<prm::CmdDelivery>(r.a0 & 0xff)), r.a0));
    case Point::kTagRefused:
      return fmt::format("tag matching of XRQ {:#x} refused operation {:#x}, entry {}", number, r.a0, r.a1);
    case Point::kLroEnd: {
      const std::uint64_t reason = r.a0 & 0xff;
      return fmt::format("{} segments, {} bytes, go to RQ {:#x} together after {}: {}", r.index, r.a0 >> 32,
                         number, time_text(static_cast<std::int64_t>(r.a1)),
                         reason < std::size(kLroEndText) ? kLroEndText[reason] : "unknown reason");
    }
    case Point::kModelFault:
      return "an invariant of the model is broken";
    case Point::kCqOverrun:
      return fmt::format("CQ {:#x} had no room: producer {}, consumer {}", number, r.index, r.a0);
    case Point::kObjDestroy:
      return fmt::format("{} {:#x} was destroyed", r.a0 == 8 ? "QP" : r.a0 == 5 ? "MKEY" : "object", number);
    case Point::kPortState:
      return fmt::format("the port became {}", r.a0 == 4   ? "ACTIVE"
                                               : r.a0 == 1 ? "DOWN"
                                                           : fmt::format("state {}", r.a0));
    case Point::kDmaErr:
      return fmt::format("the host refused a {} of {} bytes at {:#x}",
                         (r.a1 >> 32 & 1) != 0 ? "write" : "read", r.a1 & 0xffffffff, r.a0);
    case Point::kPageFault:
      return fmt::format("page fault at {:#x}", r.a1);
    case Point::kPageFaultDone:
      return fmt::format("the driver dealt with the page fault{}", r.a1 != 0 ? ": it failed" : "");
    case Point::kRuleBroken: {
      const RuleInfo* rule = find_rule(r.index);
      if (rule == nullptr) return fmt::format("rule {} broken, which this version does not know", r.index);
      return fmt::format("rule {} broken by {} {:#x} ({:x}): {}", rule->name,
                         object_name(static_cast<RuleObject>(r.a0)), r.obj, r.a1, rule->text);
    }
    case Point::kFaultInjected: {
      const FaultTypeInfo* kind = fault_kind_of(r.a0);
      const FaultActionInfo* action = fault_action_of(r.a0);
      if (kind == nullptr || action == nullptr) return "fault injected, of a kind that this version lacks";
      const std::string which =
          r.index != 0 ? fmt::format("fault {} of the plan", r.index) : std::string("asked for by hand");
      return fmt::format("{}: {}/{} ({}), object {:#x}, {:#x}", which, kind->name, action->name, action->help,
                         r.obj, r.a1);
    }
    case Point::kHealth:
      return fmt::format(
          "the firmware {}{}", r.index != 0 ? "stands still, and " : "",
          r.a0 == 0 ? "shows no health syndrome" : fmt::format("shows health syndrome {:#x}", r.a0));
    case Point::kCnpRx:
      return fmt::format("congestion notification: {} Mb/s from here on", r.a0);
    case Point::kDmaRead:
    case Point::kDmaWrite: {
      const char* const owners[] = {"", "QP", "RQ", "CQ", "EQ", "firmware"};
      const std::uint32_t kind = r.index >> 28;
      const std::string owner =
          kind == 0 || kind > 5 ? "" : fmt::format(" for {} {:#x}", owners[kind], r.index & 0xffffff);
      return fmt::format("{} {} bytes at {:#x}{}, in {}", r.p() == Point::kDmaRead ? "read" : "wrote", r.obj,
                         r.a0, owner, time_text(static_cast<std::int64_t>(r.a1)));
    }
    case Point::kUnitBusy:
      return fmt::format("unit {} worked for {}", r.obj, time_text(static_cast<std::int64_t>(r.a1)));
    case Point::kPacketOut:
      return fmt::format("out of the port: {}{} bytes, {} on the cable", packet_text(r.a0, ", "), r.a1 >> 32,
                         time_text(static_cast<std::int64_t>(r.a1 & 0xffffffff)));
    case Point::kPacketIn:
      return fmt::format("into the port: {}{} bytes", packet_text(r.a0, ", "), r.a1 >> 32);
    case Point::kFrameEnters:
    case Point::kFrameTable:
    case Point::kFrameLeaves: {
      PathStep step;
      step.record = r;
      return fmt::format("frame {}: {}", r.obj & 0xffffff, step_text(step));
    }
    default:
      return fmt::format("{}: obj {:#x} index {} a0 {:#x} a1 {:#x} ({})", info(r.p()).name, r.obj, r.index,
                         r.a0, r.a1, info(r.p()).help);
  }
}

}  // namespace hcasim::traces
