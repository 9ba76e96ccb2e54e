// SPDX-License-Identifier: BSD-3-Clause
/// Why a WQE or a command ended as it did. Nothing is guessed: each sentence is proved by records, and where
/// the trace lacks them the output says so.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "prm/cqe.h"
#include "prm/packet.h"
#include "prm/prm.h"
#include "prm/wqe.h"
#include "traces/drops.h"
#include "traces/report.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

using prm::CqeSyndrome;
using Mkc = prm::create_mkey_in::memory_key_mkey_entry;

std::string many(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

class Explainer {
 public:
  Explainer(const Analysis& a, const Story& s, Usual& usual) : a_(a), s_(s), w_(*s.wqe), usual_(usual) {}

  std::vector<Reason> run() {
    // A WQE may be done while its requested CQE never comes.
    const auto done = of(Point::kWqeDone);
    const bool missing = !w_.has_cqe && !done.empty() && (done.back().a0 >> 8 & 1) != 0;
    if (w_.status < 0 || (missing && !around(Point::kCqOverrun).empty())) {
      open();
    } else if (w_.status == 0) {
      slow();
    } else {
      failed(static_cast<CqeSyndrome>(w_.status));
    }
    injected();
    return std::move(out_);
  }

 private:
  void say(std::string text, std::vector<Record> proof = {}) {
    constexpr std::size_t kProof = 12;
    if (proof.size() > kProof) {
      text += fmt::format(" ({} records; the first and the last of them)", proof.size());
      proof.erase(proof.begin() + kProof / 2, proof.end() - kProof / 2);
    }
    out_.push_back({std::move(text), std::move(proof)});
  }

  std::vector<Record> of(Point p) const { return s_.all(p); }
  std::vector<Record> around(Point p, const std::function<bool(const Record&)>& good = nullptr) const {
    std::vector<Record> v;
    std::copy_if(s_.around.begin(), s_.around.end(), std::back_inserter(v),
                 [&](const Record& r) { return r.p() == p && (!good || good(r)); });
    return v;
  }
  std::string peer() const {
    if (s_.responder_hca >= 0) return fmt::format("QP {:#x} of HCA {}", s_.responder_qpn, s_.responder_hca);
    if (s_.remote_qpn >= 0) return fmt::format("QP {:#x}", s_.remote_qpn);
    return "the other QP";
  }

  void failed(CqeSyndrome syndrome) {
    switch (syndrome) {
      case CqeSyndrome::kTransportRetryExc:
        return retries();
      case CqeSyndrome::kRnrRetryExc:
        return rnr();
      case CqeSyndrome::kRemoteAccess:
        return remote_access();
      case CqeSyndrome::kRemoteInvalReq:
        return remote_request();
      case CqeSyndrome::kRemoteOp:
        say(fmt::format("{} could not do its part: an error of its own, not of the request.", peer()),
            of(Point::kNakRx));
        return refused_memory(true);
      case CqeSyndrome::kLocalProt:
      case CqeSyndrome::kLocalAccess:
        say("The HCA was not let to the WQE's own memory: a key, its rights or its bounds do not fit.");
        return refused_memory(false);
      case CqeSyndrome::kLocalLength:
        say(fmt::format("The message is {} bytes long, more than its QP or the port may send, or more than "
                        "the memory "
                        "that an answer goes to.",
                        w_.bytes),
            of(Point::kWqeErr));
        return;
      case CqeSyndrome::kLocalQpOp:
        say("The WQE itself is wrong: an opcode, a size or a segment that this QP does not take.",
            of(Point::kWqeErr));
        return vendor();
      case CqeSyndrome::kMwBind:
        say("The memory window was not bound: its key, its rights or its range do not fit the region.",
            of(Point::kWqeErr));
        return;
      case CqeSyndrome::kBadResp:
        say("The answer was not the one that the request asks for.", of(Point::kWqeErr));
        return;
      case CqeSyndrome::kWrFlush:
        return flushed();
      default:
        say(fmt::format("It ended with {}.", w_.status_name()), of(Point::kWqeErr));
        return;
    }
  }

  // ---- no answer ----
  void retries() {
    const auto timeouts = of(Point::kTimeout), again = of(Point::kRetransmit), arrived = of(Point::kPacketRx);
    const auto drops = of(Point::kPacketDrop), naks = of(Point::kNakRx);
    if (!timeouts.empty()) {
      say(fmt::format("The ACK timer ran out {} and the retries were used up: no acknowledge came.",
                      many(timeouts.size(), "time")),
          timeouts);
    } else if (!naks.empty()) {
      say(fmt::format("{} asked for the packets again and the retries were used up.",
                      many(naks.size(), "NAK")),
          naks);
    } else {
      say("The retries were used up.", of(Point::kWqeErr));
    }
    if (!again.empty())
      say(fmt::format("Its packets were sent again {}.", many(again.size(), "time")), again);

    const auto down = around(Point::kPortState, [&](const Record& r) { return r.a0 != 4; });
    const auto up = around(Point::kPortState, [&](const Record& r) { return r.a0 == 4; });
    if (!down.empty() && (up.empty() || up.back().time_ps < down.back().time_ps ||
                          (w_.start() != kNoTime && down.back().time_ps >= w_.start())))
      say("The port went down.", {down.back()});
    for (const Record& r : around(Point::kObjDestroy))
      if (r.a0 == 8 && (s_.remote_qpn < 0 || (r.obj & 0xffffff) == static_cast<std::uint32_t>(s_.remote_qpn)))
        say(fmt::format("The QP that it was sent to is gone: QP {:#x} of HCA {} was destroyed.",
                        r.obj & 0xffffff, r.hca),
            {r});
    for (const Record& r : around(Point::kQpError))
      if (s_.remote_qpn >= 0 && (r.obj & 0xffffff) == static_cast<std::uint32_t>(s_.remote_qpn) &&
          !(r.hca == w_.hca && w_.qpn == (r.obj & 0xffffff)))
        say(fmt::format("The QP that it was sent to, {:#x} of HCA {}, had gone to an error state.",
                        r.obj & 0xffffff, r.hca),
            {r});
    if (!drops.empty()) say(dropped(drops), drops);
    if (arrived.empty() && drops.empty())
      say("No packet of it was seen to arrive, and none to be dropped: the other end is not in this trace, "
          "or nothing is there.");
    else if (!arrived.empty() && s_.has(Point::kAckTx))
      say(fmt::format("{} got it and sent an acknowledge, which did not come back.", peer()),
          of(Point::kAckTx));
    else if (!arrived.empty())
      say(fmt::format("Packets of it did arrive ({}).", arrived.size()), arrived);
  }

  static std::string dropped(const std::vector<Record>& drops) {
    std::string text = fmt::format("{} of it {} dropped: ", many(drops.size(), "packet"),
                                   drops.size() == 1 ? "was" : "were");
    std::vector<std::uint64_t> seen;
    for (const Record& r : drops) {
      if (std::find(seen.begin(), seen.end(), r.a1) != seen.end()) continue;
      const char* reason = drop_reason_text(r.a1);
      text += (seen.empty() ? "" : "; ") + std::string(reason != nullptr ? reason : "unknown reason");
      seen.push_back(r.a1);
    }
    return text + ".";
  }

  void rnr() {
    const auto naks = of(Point::kRnrRx), sent = of(Point::kRnrTx);
    say(fmt::format("{} had no receive WQE for it, said so {} (RNR NAK), and the RNR retries were used "
                    "up: post receives "
                    "before the peer sends, or set rnr_retry to 7 (for ever).",
                    peer(), many(std::max(naks.size(), sent.size()), "time")),
        naks);
    if (!sent.empty()) say("What the other end sent:", sent);
    if (s_.has(Point::kPageFault))
      say("A page fault at the other end asks for time in the same way.", of(Point::kPageFault));
  }

  // ---- memory ----
  void remote_access() {
    const auto naks = of(Point::kNakRx);
    say(fmt::format("{} refused the access to its memory (NAK \"remote access error\").", peer()), naks);
    refused_memory(true);
  }

  void refused_memory(bool remote) {
    const auto errors = of(Point::kAccessErr);
    const auto dma = around(Point::kDmaErr);
    if (!dma.empty()) say("The host refused a DMA meanwhile.", dma);
    if (errors.empty()) return vendor();
    const Record& r = errors.back();
    const auto key = static_cast<std::uint32_t>(r.a0);
    say(fmt::format("Key {:#x}{}.", key, r.a1 != 0 ? fmt::format(", address {:#x}", r.a1) : ""), errors);
    const std::optional<Key> k = key_at(r, key, r.time_ps);
    if (!k) {
      say(
          fmt::format("This trace has no CREATE_MKEY of index {:#x} before: the key was never valid, or is "
                      "older than the trace.",
                      key >> 8));
      return;
    }
    if (k->destroyed != nullptr) {
      say(fmt::format("The key was destroyed before (command {}, at {}).", k->destroyed->seq,
                      time_text(k->destroyed->end)));
      return;
    }
    if (k->invalid) return say(k->how + " it was invalid: invalidated, or never registered.", k->proof);
    std::string rights;
    for (unsigned i = 0; i < 5; i++) {
      constexpr const char* kNames[] = {"local read", "local write", "remote read", "remote write",
                                        "atomics"};
      if ((k->rights >> i & 1) != 0) rights += std::string(rights.empty() ? "" : ", ") + kNames[i];
    }
    const bool all = k->len == UINT64_MAX;
    say(fmt::format(
            "{} it covers {}, with these rights: {}.", k->how,
            all ? std::string("all addresses")
                : fmt::format("{} bytes from {:#x} to before {:#x}", k->len, k->start, k->start + k->len),
            rights.empty() ? "none" : rights),
        k->proof);
    if (k->low_byte != (key & 0xff))
      say(fmt::format("Its low byte was {:#x}, not {:#x}: an old key, or a wrong one.", k->low_byte,
                      key & 0xff));
    if (!all && r.a1 != 0) {
      if (r.a1 < k->start || r.a1 - k->start >= k->len)
        say("The address lies outside of it.");
      else if (w_.bytes > k->len - (r.a1 - k->start))
        say(fmt::format("{} bytes from that address on end {} bytes behind it.", w_.bytes,
                        w_.bytes - (k->len - (r.a1 - k->start))));
    }
    const auto op = static_cast<prm::WqeOp>(w_.opcode);
    const bool write = op == prm::WqeOp::kRdmaWrite || op == prm::WqeOp::kRdmaWriteImm;
    const bool atomic = op == prm::WqeOp::kAtomicCs || op == prm::WqeOp::kAtomicFa;
    const bool read = op == prm::WqeOp::kRdmaRead;
    if (remote && write && (k->rights & 8) == 0) say("It has no right of remote write.");
    if (remote && read && (k->rights & 4) == 0) say("It has no right of remote read.");
    if (remote && atomic && (k->rights & 16) == 0) say("It has no right of atomics.");
    if (!remote && (read || atomic) && (k->rights & 2) == 0)
      say("It has no right of local write, which the answer needs.");
  }

  /// What a key granted at some time: as set by CREATE_MKEY or the last WQE that changed it.
  struct Key {
    std::uint64_t start = 0, len = 0;  // len UINT64_MAX: all
    unsigned rights = 0;               // bits as in Point::kMkeyChanged
    std::uint32_t low_byte = 0;
    bool invalid = false;
    const CommandRow* destroyed = nullptr;
    std::string how;
    std::vector<Record> proof;
  };
  /// `of`: a record of the key's HCA and function.
  std::optional<Key> key_at(const Record& of, std::uint32_t key, std::int64_t t) const {
    const CommandRow* make = s_.mkey_before(a_, of, key, t);
    const Record* change = nullptr;
    for (const Record& r : a_.keys())
      if (r.hca == of.hca && r.function == of.function && r.obj >> 8 == key >> 8 && r.time_ps <= t &&
          (make == nullptr || r.time_ps >= make->start) &&
          (change == nullptr || r.time_ps >= change->time_ps))
        change = &r;
    if (make == nullptr && change == nullptr) return std::nullopt;
    Key k;
    const std::int64_t since = make != nullptr ? make->end : change->time_ps;
    for (const CommandRow& c : a_.commands())
      if (c.hca == of.hca && c.function == of.function && c.opcode == prm::op::DESTROY_MKEY && !c.failed() &&
          c.end != kNoTime && c.start >= since && c.end <= t && c.input.size() >= 12 &&
          prm::get<prm::destroy_mkey_in::mkey_index>(c.input.data()) == key >> 8)
        k.destroyed = &c;
    if (change != nullptr) {
      k.start = change->a0;
      k.len = change->a1;
      k.rights = change->index & 0x1f;
      k.low_byte = change->obj & 0xff;
      k.invalid = (change->index >> 8 & 1) != 0;
      k.how = "As a WQE left it,";
      k.proof = {*change};
      return k;
    }
    if (make->input.size() * 8 < Mkc::len::bit_off + Mkc::len::bits) return std::nullopt;
    const std::uint8_t* in = make->input.data();
    k.start = prm::get<Mkc::start_addr>(in);
    k.len = prm::get<Mkc::length64>(in) != 0 ? UINT64_MAX : prm::get<Mkc::len>(in);
    k.rights = unsigned{prm::get<Mkc::lr>(in)} | unsigned{prm::get<Mkc::lw>(in)} << 1 |
               unsigned{prm::get<Mkc::rr>(in)} << 2 | unsigned{prm::get<Mkc::rw>(in)} << 3 |
               unsigned{prm::get<Mkc::a>(in)} << 4;
    k.low_byte = prm::get<Mkc::mkey_7_0>(in);
    k.invalid = prm::get<Mkc::free>(in) != 0;
    k.how = fmt::format("As command {} made it,", make->seq);
    return k;
  }

  void remote_request() {
    say(fmt::format("{} found the request wrong (NAK \"invalid request\").", peer()), of(Point::kNakRx));
    const auto ends = around(Point::kRwqeErr, [](const Record& r) {
      return static_cast<CqeSyndrome>(r.a0 & 0xff) == CqeSyndrome::kLocalLength;
    });
    if (!ends.empty())
      say(fmt::format("The message of {} bytes is longer than the receive WQE that it met: that one ended "
                      "with LOCAL_LENGTH.",
                      w_.bytes),
          ends);
    else
      say("Among the causes: an operation that the QP does not allow, a message longer than the receive WQE "
          "or the QP's limit, "
          "an atomic that is not aligned, more outstanding reads than the QP takes.");
  }

  void vendor() {
    const auto errors = of(Point::kWqeErr);
    if (errors.empty()) return;
    const auto code = static_cast<unsigned>(errors.back().a0 >> 8 & 0xff);
    if (code != 0) say(fmt::format("The vendor syndrome of its CQE is {:#x}.", code), errors);
  }

  void flushed() {
    say("It was not done: its QP was in an error state, and what is posted then is flushed.",
        of(Point::kFlush));
    const WqeRow* first = nullptr;
    for (const WqeRow& x : a_.wqes())
      if (x.hca == w_.hca && x.qpn == w_.qpn && x.life == w_.life && x.status > 0 && !x.flushed &&
          x.status != static_cast<int>(CqeSyndrome::kWrFlush) &&
          (first == nullptr || x.serial < first->serial))
        first = &x;
    if (first != nullptr) {
      say(fmt::format("The first that failed on this QP is {}: {} with {}. `why {}` tells of it.",
                      wqe_id(*first), first->opcode_name(), first->status_name(), wqe_id(*first)));
      return;
    }
    const auto self = around(
        Point::kQpError, [&](const Record& r) { return r.hca == w_.hca && (r.obj & 0xffffff) == w_.qpn; });
    if (!self.empty()) say("The QP went to the error state by itself.", self);
    for (const CommandRow& c : a_.commands())
      if (c.hca == w_.hca && (!w_.posted() || c.function == w_.function) && c.opcode == prm::op::_2ERR_QP &&
          !c.failed() && c.input.size() >= 12 &&
          prm::get<prm::rst2init_qp_in::qpn>(c.input.data()) == w_.qpn &&
          (w_.end() == kNoTime || c.start <= w_.end()))
        say(fmt::format("The driver moved the QP to ERR (command {}, at {}).", c.seq, time_text(c.start)));
  }

  // ---- not complete ----
  void open() {
    const auto overrun = around(Point::kCqOverrun);
    if (!overrun.empty()) {
      say(fmt::format("Its CQE was never written: CQ {:#x} was full, which is an error of the CQ and of "
                      "every QP on it. The driver polls too "
                      "late, or the CQ is smaller than what may complete into it.",
                      s_.send_cqn),
          overrun);
      return;
    }
    if (s_.own.empty()) return say("The trace has nothing of it.");
    const Record& last = s_.own.back();
    say(fmt::format("It is not complete at the trace's end. The last of it: {}.", in_words(last)), {last});
    if (s_.has(Point::kTimeout)) say("Its packets are not acknowledged.", of(Point::kTimeout));
    if (!of(Point::kRnrRx).empty()) say("The other end has no receive WQE for it.", of(Point::kRnrRx));
    if (s_.has(Point::kPageFault) && of(Point::kPageFaultDone).size() < of(Point::kPageFault).size())
      say("It waits for a page that the driver has not brought.", of(Point::kPageFault));
    const auto drops = of(Point::kPacketDrop);
    if (!drops.empty()) say(dropped(drops), drops);
    const auto self = around(
        Point::kQpError, [&](const Record& r) { return r.hca == w_.hca && (r.obj & 0xffffff) == w_.qpn; });
    if (!self.empty()) say("Its QP is in an error state.", self);
  }

  // ---- successful, but slow ----
  void slow() {
    const std::int64_t took = w_.end() - w_.start();
    const Usual::Time others = usual_.life(w_);
    const std::string kind = fmt::format("{}, {} bytes, of its QP", w_.opcode_name(), w_.bytes);
    if (others.count < 2) {
      say(fmt::format("It succeeded, in {}. The trace has no other like it ({}).", time_text(took), kind));
      return circumstances();
    }
    say(fmt::format("It succeeded, in {}. The median of the {} like it ({}) is {}.", time_text(took),
                    others.count, kind, time_text(others.median)));
    // The steps that exceed their medians by the most.
    const auto steps = w_.steps();
    struct Step {
      Stage from, to;
      std::int64_t extra, took;
      bool usual;  // most like it have this step
    };
    std::vector<Step> late;
    for (std::size_t i = 1; i < steps.size(); i++) {
      if (steps[i].first == Stage::kConsumed) continue;  // the driver's time, not the WQE's
      const Usual::Time usual = usual_.step(w_, steps[i - 1].first, steps[i].first);
      const std::int64_t mine = steps[i].second - steps[i - 1].second;
      // A step that most WQEs do not have (other order of stages) counts in full.
      const bool has_usual = usual.count * 2 >= others.count;
      late.push_back(
          {steps[i - 1].first, steps[i].first, mine - (has_usual ? usual.median : 0), mine, has_usual});
    }
    std::stable_sort(late.begin(), late.end(),
                     [](const Step& x, const Step& y) { return x.extra > y.extra; });
    for (std::size_t i = 0; i < late.size() && i < 3; i++) {
      // A tenth of the total is worth a sentence.
      if (late[i].extra * 10 < took) break;
      say(fmt::format("From {} to {} it took {}, {}.", kStageNames[static_cast<unsigned>(late[i].from)],
                      kStageNames[static_cast<unsigned>(late[i].to)], time_text(late[i].took),
                      late[i].usual ? time_text(late[i].extra) + " more than is usual"
                                    : std::string("a step that most like it do not have")));
    }
    circumstances();
  }

  // What else may have held it up.
  void circumstances() {
    const auto misses = around(Point::kCtxMiss);
    if (!misses.empty()) say("Contexts had to be read from host memory.", misses);
    for (const Record& r : of(Point::kTranslated))
      if (r.a1 != 0)
        say(fmt::format("{} not in the cache.", r.a1 == 1
                                                    ? "A key or translation was"
                                                    : fmt::format("{} keys or translations were", r.a1)),
            {r});
    const auto again = of(Point::kRetransmit), rnrs = of(Point::kRnrRx), timeouts = of(Point::kTimeout),
               faults = of(Point::kPageFault);
    if (!again.empty()) say(fmt::format("It was sent again {}.", many(again.size(), "time")), again);
    if (!timeouts.empty()) say("The ACK timer ran out.", timeouts);
    if (!rnrs.empty()) say("The other end had no receive WQE for it at first.", rnrs);
    if (!faults.empty()) say("Pages were not there: the driver had to bring them.", faults);
    const auto cnps = around(Point::kCnpRx);
    if (!cnps.empty()) say("Its QP is slowed down by congestion control.", cnps);
    const auto drops = of(Point::kPacketDrop);
    if (!drops.empty()) say(dropped(drops), drops);
  }

  void injected() {
    const auto faults = around(Point::kFaultInjected);
    if (!faults.empty()) say("Faults were injected on purpose meanwhile.", faults);
  }

  const Analysis& a_;
  const Story& s_;
  const WqeRow& w_;
  Usual& usual_;
  std::vector<Reason> out_;
};

}  // namespace

Usual::Usual(const Analysis& a) {
  for (const WqeRow& w : a.wqes())
    if (w.status == 0 && w.end() != kNoTime) kind_of(w).rows.push_back(&w);
}

namespace {
Usual::Time median_of(std::vector<std::int64_t> v) {
  std::sort(v.begin(), v.end());
  return {v.size(), percentile(v, 50)};
}
}  // namespace

Usual::Time Usual::life(const WqeRow& w) {
  Kind& k = kind_of(w);
  if (k.life) return *k.life;
  std::vector<std::int64_t> times;
  for (const WqeRow* x : k.rows) times.push_back(x->end() - x->start());
  return *(k.life = median_of(std::move(times)));
}

Usual::Time Usual::step(const WqeRow& w, Stage from, Stage to) {
  Kind& k = kind_of(w);
  const auto [it, is_new] = k.steps.try_emplace({from, to});
  if (!is_new) return it->second;
  std::vector<std::int64_t> times;
  for (const WqeRow* x : k.rows)
    if (x->at(from) != kNoTime && x->at(to) != kNoTime && x->at(to) >= x->at(from))
      times.push_back(x->at(to) - x->at(from));
  return it->second = median_of(std::move(times));
}

std::vector<Reason> why(const Analysis& a, const Story& s, Usual* usual) {
  return Explainer(a, s, *usual).run();
}

std::vector<Reason> why(const Analysis& a, const Story& s) {
  Usual usual(a);
  return why(a, s, &usual);
}

}  // namespace hcasim::traces
