// SPDX-License-Identifier: BSD-3-Clause
/// A made-up trace in which there is some of everything: two HCAs, several send queues, bursts with idle time
/// between them, failed, flushed and unfinished WQEs, retries, commands that are refused, rules broken,
/// faults.
#pragma once

#include <cstdint>
#include <random>

#include "prm/cmd_queue.h"
#include "prm/cqe.h"
#include "prm/prm.h"
#include "traces/drops.h"
#include "traces/fault_list.h"
#include "traces/tracer.h"

namespace hcasim::traces {

class VariedTrace {
 public:
  VariedTrace(Tracer& tx, Tracer& rx, unsigned queues, std::uint64_t seed = 1)
      : tx_(tx), rx_(rx), queues_(queues != 0 ? queues : 1), rnd_(seed) {}

  /// `wqes` WQEs: 15 to 17 records each.
  void write(std::uint32_t wqes) {
    for (std::uint32_t i = 0; i < 40; i++) command(i);
    std::int64_t t = 50'000'000;
    for (std::uint32_t i = 0; i < wqes; i++) {
      t += some(60'000, 500'000);
      if (i % 5000 == 4999) t += 40'000'000'000;
      wqe(t, i);
    }
    tx_.broke_value(Rule::kSqOverrun, t, RuleObject::kQp, 0x40, 0x10002);
    tx_.broke_value(Rule::kUarRegister, t + 7, RuleObject::kUar, 3, 0x123);
    tx_.record(Point::kDoorbellBad, t + 9, 0x99, bad_store(RuleObject::kCq), 3 * 4096 + 0x20, 5);
    tx_.record(Point::kFaultInjected, t + 11, 0x40, 1, fault_word(FaultType::kWire, FaultAction::kDrop), 1);
  }

 private:
  std::int64_t some(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(rnd_);
  }

  void command(std::uint32_t seq) {
    const std::int64_t t = 1'000'000 + seq * 1'000'000;
    const std::uint16_t op = seq % 3 == 0 ? prm::op::CREATE_MKEY : prm::op::QUERY_ADAPTER;
    const bool bad = seq % 20 == 7;
    std::uint8_t in[64] = {}, out[16] = {};
    prm::store16(in, op);
    tx_.record_blob(Point::kCmdStart, t, 0, seq, op, sizeof in, in, sizeof in);
    if (seq == 39) return;  // never answered
    const auto status = static_cast<std::uint64_t>(bad ? prm::CmdStatus::kBadParam : prm::CmdStatus::kOk);
    tx_.record_blob(Point::kCmdDone, t + some(1000, 800'000), 0, seq, op | status << 16, bad ? 0x3457 : 0,
                    out, sizeof out);
  }

  void wqe(std::int64_t t, std::uint32_t i) {
    const std::uint32_t q = i % queues_, qpn = 0x40 + q, serial = i / queues_, tag = tx_.tag(qpn);
    const std::uint32_t bytes = 64u << (q % 7);
    const bool fails = i % 997 == 500, open = i % 1999 == 1998, slow = i % 313 == 7;
    const std::uint32_t psn = serial & 0xffffff;
    const auto next = [&](std::int64_t least, std::int64_t most) { return t += some(least, most); };
    tx_.record(Point::kDoorbell, t, qpn, serial, serial & 0xffff, 3);
    tx_.record(Point::kScheduled, next(20'000, 90'000), qpn, serial, 1);
    tx_.record(Point::kWqeFetch, next(250'000, 400'000), qpn, serial, 64, serial & 0xffff);
    tx_.record(Point::kWqeParsed, next(5000, 15'000), qpn, serial,
               (q % 2 ? 0x08u : 0x0au) | (serial & 0xffff) << 16, bytes);
    tx_.record(Point::kTranslated, next(5000, 60'000), qpn, serial, 1, slow ? 2 : 0);
    tx_.record(Point::kGathered, next(250'000, 400'000), qpn, serial, bytes);
    tx_.record(Point::kPacketTxFirst, next(10'000, 40'000), qpn, serial, psn | 4u << 24, bytes);
    tx_.record(Point::kPacketTxLast, next(5000, 100'000), qpn, serial, psn | 4u << 24, 1);
    if (fails) {
      rx_.record(Point::kPacketDrop, next(100'000, 200'000), tag, serial, psn | 4u << 24,
                 static_cast<std::uint64_t>(DropReason::kQpState));
      tx_.record(Point::kTimeout, next(20'000'000, 30'000'000), qpn, serial, psn, 0);
      tx_.record(Point::kRetransmit, t, qpn, serial, psn, 1);
      tx_.record(Point::kWqeErr, t, qpn, serial,
                 static_cast<std::uint64_t>(prm::CqeSyndrome::kTransportRetryExc) | 0x81 << 8, 0x0a);
      completion(next(20'000, 60'000), q, qpn, serial, prm::CqeOp::kReqErr,
                 prm::CqeSyndrome::kTransportRetryExc);
      return;
    }
    rx_.record(Point::kPacketRx, next(100'000, 200'000), tag, serial, psn | 4u << 24, bytes);
    rx_.record(Point::kChecked, next(10'000, 30'000), tag, serial, psn | 4u << 24, 0x1000 + q);
    if (open) return;
    rx_.record(Point::kScattered, next(150'000, slow ? 30'000'000 : 250'000), tag, serial, bytes, 0x1000 + q);
    rx_.record(Point::kAckTx, next(5000, 20'000), tag, serial, psn, 0);
    tx_.record(Point::kAckRx, next(100'000, 200'000), qpn, serial, psn, 0);
    completion(next(20'000, 60'000), q, qpn, serial, prm::CqeOp::kReq, prm::CqeSyndrome::kOk);
    tx_.record(Point::kCqConsumed, next(100'000, 900'000), 0x10 + q, serial + 1);
  }

  void completion(std::int64_t t, std::uint32_t q, std::uint32_t qpn, std::uint32_t serial, prm::CqeOp op,
                  prm::CqeSyndrome syndrome) {
    tx_.record(Point::kCqeWritten, t, qpn, serial,
               (0x10 + q) | static_cast<std::uint64_t>(op) << 24 | static_cast<std::uint64_t>(syndrome) << 32,
               serial);
  }

  Tracer &tx_, &rx_;
  const unsigned queues_;
  std::mt19937_64 rnd_;
};

/// Records in which nothing fits together.
inline void write_anything(Tracer& t, unsigned records, std::uint64_t seed = 7) {
  std::mt19937_64 rnd(seed);
  for (unsigned i = 0; i < records; i++) {
    const auto point = static_cast<Point>(rnd() % kPoints);
    const auto time = static_cast<std::int64_t>(rnd() >> rnd() % 64) - (i % 7 == 0 ? 1'000'000 : 0);
    const auto obj = static_cast<std::uint32_t>(rnd() % 4 == 0 ? rnd() : rnd() % 2000);
    const auto index = static_cast<std::uint32_t>(rnd() % 4 == 0 ? rnd() : rnd() % 16);
    const std::uint64_t a0 = rnd() >> rnd() % 64, a1 = rnd() >> rnd() % 64;
    std::uint8_t blob[600];
    for (auto& b : blob) b = static_cast<std::uint8_t>(rnd());
    t.record_blob(point, time, obj, index, a0, a1, blob, rnd() % 4 == 0 ? rnd() % sizeof blob : 0);
  }
}

}  // namespace hcasim::traces
