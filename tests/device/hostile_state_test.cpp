// SPDX-License-Identifier: BSD-3-Clause
// States that a file may hold and no card comes to: numbers that the model takes as sizes, divisors, indexes
// or ends of loops without another look. Each is made by saving an object that is so, and is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "card/state/load.h"
#include "card/state/save.h"
#include "card/state/version.h"
#include "firmware-stub/objects/objects.h"
#include "model/cc/flow.h"
#include "model/cq/cq.h"
#include "model/crypto/tls.h"
#include "model/ctx/eth.h"
#include "model/ctx/qp.h"
#include "model/fault/injector.h"
#include "model/packet/packet.h"
#include "model/steer/actions.h"
#include "model/timed_queue.h"
#include "model/tpt/memic.h"
#include "model/tpt/signature.h"
#include "traces/tracer.h"

namespace hcasim::saved {
namespace {

template <class T>
std::string state_of(T& object) {
  Names names;
  StateNames naming(names);
  naming("it", object);
  TaggedWriter out(kVersion);
  StateSave save(out, names);
  save("it", object);
  return std::move(out).finish();
}

// Empty: it was taken.
template <class T>
std::string refusal(const std::string& state, T& into) {
  TaggedReader from(state);
  StateLoad load(from);
  load.functions_are(1);
  try {
    load("it", into);
    load.finish();
  } catch (const StateError& e) {
    return e.what();
  }
  return "";
}

template <class T>
std::string refusal_of(T& object) {
  T other{};
  return refusal(state_of(object), other);
}

// What it is called, how an object that can be becomes one that cannot, and words of the message.
template <class T>
struct Row {
  const char* what;
  std::function<void(T&)> spoil;
  const char* message;
};

template <class T>
void expect_refused(const std::function<void(T&)>& make, const std::vector<Row<T>>& rows) {
  {
    T good{};
    make(good);
    EXPECT_EQ(refusal_of(good), "");
  }
  for (const Row<T>& row : rows) {
    T bad{};
    make(bad);
    row.spoil(bad);
    EXPECT_NE(refusal_of(bad).find(row.message), std::string::npos) << row.what << ": " << refusal_of(bad);
  }
}

TEST(HostileState, PathMtus) {
  const auto set = [](unsigned mtu) { return [mtu](Qp& qp) { qp.mtu = mtu; }; };
  for (const unsigned mtu : {256u, 512u, 1024u, 2048u, 4096u}) {
    Qp qp;
    qp.mtu = mtu;
    EXPECT_EQ(refusal_of(qp), "") << mtu;
  }
  const char* const words = "there is no such path MTU";
  expect_refused<Qp>([](Qp&) {}, {{"a divisor of 0", set(0), words},
                                  {"1", set(1), words},
                                  {"128", set(128), words},
                                  {"no power of two", set(1500), words},
                                  {"longer than a packet's buffer", set(16384), words}});
}

// Sizes of what is read of a ring at once, or kept for each request of the peer.
TEST(HostileState, RingsAndDepths) {
  const char* const sizes = "no CQE has such a size";
  const auto entry = [](unsigned bytes) { return [bytes](Cq& cq) { cq.cqe_size = bytes; }; };
  expect_refused<Cq>(
      entry(128),
      {{"nothing", entry(0), sizes}, {"a page", entry(4096), sizes}, {"4 GiB", entry(0xffffffc0), sizes}});
  const char* const pages = "no queue has such pages";
  const auto page = [](unsigned log) { return [log](GuestRing& ring) { ring.log_page = log; }; };
  const auto largest = [&](GuestRing& ring) {
    page(43)(ring);
    ring.start = (std::uint64_t{1} << 43) - 64;
  };
  expect_refused<GuestRing>(largest, {{"half a page", page(11), pages},
                                      {"more than the memory there is", page(63), pages},
                                      {"begins behind its first page",
                                       [](GuestRing& ring) { ring.start = std::uint64_t{1} << 43; }, pages}});
  const char* const depth = "no QP has as many READs and atomics outstanding";
  expect_refused<Qp>([](Qp& qp) { qp.log_rra_max = qp.log_sra_max = 7; },
                     {{"incoming", [](Qp& qp) { qp.log_rra_max = 31; }, depth},
                      {"outgoing", [](Qp& qp) { qp.log_sra_max = 8; }, depth}});
}

SendWqe& first(Qp& qp) { return qp.req.window.front(); }

// A WRITE of 2500 bytes that has begun.
void half_a_write(Qp& qp) {
  qp.mtu = 1024;
  SendWqe& w = qp.req.window.push();
  w.opcode = prm::WqeOp::kRdmaWrite;
  w.length = 2500;
  w.sges = {{0x1000, 1, 2500}};
  w.started = true;
  w.packets = 3;
  w.sent = 1;
}

void atomic(Qp& qp) {
  SendWqe& w = qp.req.window.push();
  w.opcode = prm::WqeOp::kMaskedCs;
  w.opmod = prm::kAtomicExtended | 2;  // 16 bytes
  w.length = 16;
  w.bytes.resize(64);
  w.sges = {{0x1000, 1, 16}};
}

void frames(Qp& qp) {
  qp.type = QpType::kSq;
  SendWqe& w = qp.req.window.push();
  w.opcode = prm::WqeOp::kEnhancedMpsw;
  w.bytes.resize(100);
  w.sges = {{0, prm::kInvalidLkey, 60}, {0x1000, 1, 500}, {60, prm::kInvalidLkey, 40}};
  w.length = 600;
  w.packets = 3;
}

TEST(HostileState, SendWqes) {
  const char* const words = "a WQE of the send queue does not agree with itself";
  expect_refused<Qp>(
      half_a_write,
      {{"more sent than there is", [](Qp& qp) { first(qp).sent = 4; }, words},
       {"nothing left to send", [](Qp& qp) { first(qp).sent = 3; }, words},
       {"more answered than asked", [](Qp& qp) { first(qp).answered = 4; }, words},
       {"too many packets", [](Qp& qp) { first(qp).packets = 4; }, words},
       {"too few packets", [](Qp& qp) { first(qp).packets = 2; }, words},
       {"no message is as long", [](Qp& qp) { first(qp).length = (std::uint64_t{1} << 42) + 2500; }, words},
       {"sent before it began", [](Qp& qp) { first(qp).started = false; }, words},
       {"the MTU of another", [](Qp& qp) { qp.mtu = 512; }, words},
       {"of the HCA's own",
        [](Qp& qp) {
          qp.req.own.push_back(first(qp));
          qp.req.own[0].sent = 3;
          first(qp).sent = 2;
        },
        words}});
  expect_refused<Qp>(
      atomic, {{"no size of an atomic", [](Qp& qp) { first(qp).length = 24; }, words},
               {"a size of another", [](Qp& qp) { first(qp).length = 8; }, words},
               {"operands are missing", [](Qp& qp) { first(qp).bytes.resize(63); }, words},
               {"larger than the hardware has",
                [](Qp& qp) {
                  first(qp).opmod = prm::kAtomicExtended | 7;
                  first(qp).length = 512;
                  first(qp).bytes.resize(2048);
                },
                words},
               {"8 bytes have the others", [](Qp& qp) { first(qp).opcode = prm::WqeOp::kAtomicFa; }, words}});
  expect_refused<Qp>(frames,
                     {{"more frames than segments", [](Qp& qp) { first(qp).packets = 4; }, words},
                      {"inline behind the bytes", [](Qp& qp) { first(qp).sges[2].addr = 61; }, words},
                      {"inline that goes round", [](Qp& qp) { first(qp).sges[2].addr = UINT64_MAX; }, words},
                      {"segments of no length",
                       [](Qp& qp) {
                         first(qp).opcode = prm::WqeOp::kLso;
                         first(qp).eth.mss = 0;
                       },
                       words},
                      {"one frame in three", [](Qp& qp) { first(qp).opcode = prm::WqeOp::kSend; }, words}});
  const auto datagram = [](Qp& qp) {
    qp.type = QpType::kUd;
    SendWqe& w = qp.req.window.push();
    w.opcode = prm::WqeOp::kSend;
    w.length = 4096;
    w.started = true;
  };
  expect_refused<Qp>(datagram, {{"a datagram of two packets",
                                 [](Qp& qp) {
                                   first(qp).length = 8192;
                                   first(qp).packets = 2;
                                 },
                                 words}});
  const auto dump = [](Qp& qp) {
    qp.type = QpType::kSq;
    SendWqe& w = qp.req.window.push();
    w.opcode = prm::WqeOp::kDump;
    w.length = kMaxFrame;
  };
  expect_refused<Qp>(dump, {{"more than a packet has room for", [](Qp& qp) { ++first(qp).length; }, words}});
  const auto rendezvous = [](Qp& qp) {
    SendWqe& w = qp.req.window.push();
    w.opcode = prm::WqeOp::kRdmaRead;
    w.rendezvous = SendWqe::Rendezvous::kRead;
    w.bytes.resize(sizeof(prm::Tmh) + sizeof(prm::Rvh));
  };
  expect_refused<Qp>(rendezvous,
                     {{"its headers are missing", [](Qp& qp) { first(qp).bytes.clear(); }, words}});
}

// What a WQE that is refused has in it does not matter: it is never sent.
TEST(HostileState, RefusedWqesAreTaken) {
  Qp qp;
  atomic(qp);
  first(qp).length = 24;
  first(qp).syndrome = static_cast<std::uint8_t>(prm::CqeSyndrome::kLocalLength);
  EXPECT_EQ(refusal_of(qp), "");
}

TEST(HostileState, ReceiveWqesReadAhead) {
  const char* const words = "what was read ahead has no bytes";
  const auto ahead = [](Qp& qp) {
    qp.log_rq_stride = 6;
    qp.resp.rq_ahead.bytes.resize(256);
    qp.resp.rq_ahead.count = 4;
  };
  expect_refused<Qp>(ahead, {{"one too many", [](Qp& qp) { qp.resp.rq_ahead.count = 5; }, words},
                             {"longer ones", [](Qp& qp) { qp.log_rq_stride = 7; }, words}});
  const auto of_rq = [](Rq& rq) {
    rq.log_stride = 6;
    rq.ahead.bytes.resize(256);
    rq.ahead.count = 4;
  };
  expect_refused<Rq>(of_rq, {{"one too many", [](Rq& rq) { rq.ahead.count = 5; }, words},
                             {"longer ones", [](Rq& rq) { rq.log_stride = 7; }, words}});
}

TEST(HostileState, StridingQueues) {
  const auto split = [](Rq& rq) {
    rq.type = WqType::kLinkedListStriding;
    rq.log_strides = 9;
    rq.log_stride_size = 6;
    rq.split = HeaderSplit{};
    rq.split->log_reservation = 12;
  };
  const char* const strides = "no WQE has such strides";
  const char* const reservations = "reservations do not fit into a WQE";
  expect_refused<Rq>(
      split, {{"more strides than a WQE has", [](Rq& rq) { rq.log_strides = 17; }, strides},
              {"longer strides", [](Rq& rq) { rq.log_stride_size = 14; }, strides},
              {"a WQE of 4 GiB", [](Rq& rq) { rq.log_strides = 31, rq.log_stride_size = 1; }, strides},
              {"longer than a WQE", [](Rq& rq) { rq.split->log_reservation = 16; }, reservations},
              {"shorter than a stride", [](Rq& rq) { rq.split->log_reservation = 5; }, reservations}});
  Rq large;
  large.log_stride = 15;  // none is taken from it, but it may be made
  EXPECT_EQ(refusal_of(large), "");
}

TEST(HostileState, ChangesOfFields) {
  const char* const words = "no field has as many bits";
  expect_refused<FieldAction>([](FieldAction& a) { a.offset = a.from_offset = 31, a.width = 32; },
                              {{"offset", [](FieldAction& a) { a.offset = 32; }, words},
                               {"width", [](FieldAction& a) { a.width = 33; }, words},
                               {"copied from", [](FieldAction& a) { a.from_offset = 32; }, words}});
}

TEST(HostileState, ContextsOfDcInitiatorsNamedTwice) {
  const auto with = [](std::vector<std::uint32_t> unused) {
    TaggedWriter out(kVersion);
    out.open("it", Type::kGroup);
    out.open("contexts", Type::kList);
    out.none("");
    out.none("");
    out.close();
    out.bytes("free", unused.data(), unused.size() * sizeof unused[0]);
    out.open("index", Type::kList);
    out.close();
    out.close();
    return std::move(out).finish();
  };
  DcContexts contexts(0);
  EXPECT_EQ(refusal(with({0, 1}), contexts), "");
  EXPECT_NE(refusal(with({1, 1}), contexts).find("do not agree with their index"), std::string::npos);
  EXPECT_NE(refusal(with({0, 2}), contexts).find("do not agree with their index"), std::string::npos);
}

// Packets, by a reference to each.
struct Holder {
  PacketRef packet = PacketPool::make();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, packet);
  }
};

TEST(HostileState, Packets) {
  const auto plain = [](Holder& h) {
    h.packet->opcode = static_cast<std::uint8_t>(prm::BthOp::kAtomicAck);
    h.packet->set_head(kMaxFrame - prm::kMaxAtomicBytes);
  };
  expect_refused<Holder>(
      plain, {{"none", [](Holder& h) { h.packet = {}; }, "a packet is missing"},
              {"no room for an atomic's result", [](Holder& h) { h.packet->set_head(kMaxFrame - 8); },
               "the payload does not lie in the packet"},
              {"payload behind the buffer",
               [](Holder& h) {
                 const std::vector<std::uint8_t> bytes(kMaxFrame);
                 h.packet->set_payload(bytes.data(), kMaxFrame);
               },
               "the payload does not lie in the packet"}});
  const auto run = [](Holder& h) {
    const std::vector<std::uint8_t> bytes(2048);
    h.packet->opcode = static_cast<std::uint8_t>(prm::BthOp::kWriteMiddle);
    h.packet->packets = 2;
    h.packet->unit = 1024;
    h.packet->at.fill(5);
    h.packet->set_payload(bytes.data(), 2048);
  };
  const auto opcode = [](prm::BthOp op, std::uint8_t transport) {
    return [op, transport](Holder& h) { h.packet->opcode = static_cast<std::uint8_t>(op) | transport; };
  };
  const char* const words = "such packets do not go as a run";
  expect_refused<Holder>(run,
                         {{"answers of atomics", opcode(prm::BthOp::kAtomicAck, prm::bth::kRc), words},
                          {"answers of READs", opcode(prm::BthOp::kReadRespMiddle, prm::bth::kRc), words},
                          {"with immediate", opcode(prm::BthOp::kWriteLastImm, prm::bth::kRc), words},
                          {"of another transport", opcode(prm::BthOp::kWriteMiddle, prm::bth::kUc), words}});
}

TEST(HostileState, QueuesWithoutPackets) {
  struct Faults : FaultSink {
    void model_fault(const char*, const char*) noexcept override {}
  } faults;
  const auto nothing = [](Time, PacketRef&) {};
  TimedQueue<PacketRef> queue("queue", nothing, faults), other("other", nothing, faults);
  queue.push(5, PacketPool::make());
  EXPECT_EQ(refusal(state_of(queue), other), "");
  queue.push(6, PacketRef());
  EXPECT_NE(refusal(state_of(queue), other).find("a packet is missing"), std::string::npos);
  queue.clear();
  other.clear();
}

TEST(HostileState, SignedKeys) {
  const auto streams = [](MkeySignature& s) {
    s.format.mem.type = SigType::kCrc32;
    s.format.mem.block = 512;
    s.format.wire = s.format.mem;
    s.format.same = true;
    s.tx.start(s.format, true, 1024 + 100);
    s.rx.start_blind(s.format, false, 514);  // within a signature
  };
  const char* const words = "a stream does not agree with its key's format";
  expect_refused<MkeySignature>(
      streams,
      {{"no such signature", [](MkeySignature& s) { s.format.mem.type = static_cast<SigType>(4); },
        "there is no such block of data with a signature"},
       {"a unit that goes round", [](MkeySignature& s) { s.format.mem.block = UINT64_MAX - 3; },
        "there is no such block of data with a signature"},
       {"sides that differ", [](MkeySignature& s) { s.format.wire.block = 520; },
        "both sides do not have the same blocks"},
       {"streams of a shorter block", [](MkeySignature& s) { s.format.mem.block = s.format.wire.block = 64; },
        words},
       {"streams of other signatures",
        [](MkeySignature& s) { s.format.mem.type = s.format.wire.type = SigType::kT10Crc; }, words}});
}

TEST(HostileState, DeviceMemory) {
  const auto with = [](std::size_t bytes) {
    const std::vector<std::uint8_t> content(bytes);
    TaggedWriter out(kVersion);
    out.open("it", Type::kGroup);
    out.open("areas", Type::kList);
    out.close();
    out.bytes("bytes", content.data(), content.size());
    out.close();
    return std::move(out).finish();
  };
  Memic memory;
  EXPECT_EQ(refusal(with(0), memory), "");
  EXPECT_EQ(refusal(with(Memic::kBytes), memory), "");
  EXPECT_NE(refusal(with(64), memory).find("the areas do not lie in the memory"), std::string::npos);
}

TEST(HostileState, Faults) {
  struct Sink : FaultSink {
    void model_fault(const char*, const char*) noexcept override {}
  } sink;
  traces::Tracer tracer;
  const auto refusal_with = [&](const std::function<void(FaultSpec&)>& spoil) {
    FaultSpec spec;
    spec.kind = FaultType::kPcie;
    spec.action = FaultAction::kAer;
    spec.timed = true;
    spec.from = 1'000'000;
    spec.every = 0;
    spec.given = traces::fault_keys(FaultKey::kError, FaultKey::kDuration);
    spoil(spec);
    Injector one("one", tracer, sink), other("other", tracer, sink);
    one.load({spec});
    std::string why = refusal(state_of(one), other);
    one.end_all();
    other.end_all();
    return why;
  };
  const auto value = [](FaultKey key, std::uint64_t v) {
    return [key, v](FaultSpec& s) { s.values[static_cast<unsigned>(key)] = {v, v}; };
  };
  EXPECT_EQ(refusal_with([](FaultSpec&) {}), "");
  EXPECT_EQ(refusal_with([](FaultSpec& s) { s.every = 1'000'000'000'000; }), "");
  const auto expect = [&](const char* what, const std::function<void(FaultSpec&)>& spoil) {
    EXPECT_NE(refusal_with(spoil).find("the plan of faults does not agree with itself"), std::string::npos)
        << what;
  };
  expect("no such error", value(FaultKey::kError, pcie_errors().size()));
  expect("back in time", [](FaultSpec& s) { s.every = std::uint64_t{1} << 63; });
  expect("lasts beyond all time", value(FaultKey::kDuration, INT64_MAX));
  expect("an action of another kind", [](FaultSpec& s) { s.action = FaultAction::kDrop; });
}

TEST(HostileState, FlowsOfCongestionControl) {
  const auto flow = [](CcFlow& f) {
    f.limited = true;
    f.current = 1000;
    f.target = 2000;
    f.alpha = 1023;
  };
  const char* const rate = "there is no such rate";
  const char* const time = "there is no such time";
  expect_refused<CcFlow>(
      flow, {{"no number", [](CcFlow& f) { f.current = std::nan(""); }, rate},
             {"no end", [](CcFlow& f) { f.target = std::numeric_limits<double>::infinity(); }, rate},
             {"backwards", [](CcFlow& f) { f.current = -1; }, rate},
             {"alpha", [](CcFlow& f) { f.alpha = 1025; }, rate},
             {"timer", [](CcFlow& f) { f.timer_due = -1; }, time},
             {"alpha's timer", [](CcFlow& f) { f.alpha_due = -1; }, time},
             {"cut", [](CcFlow& f) { f.cut_at = -1; }, time},
             {"bytes", [](CcFlow& f) { f.bytes = UINT64_MAX; }, "no byte counter comes to that"}});
}

TEST(HostileState, RecordsOfTls) {
  const char* const words = "more of a record is there than it has";
  const auto head = [](TlsRx& rx) {  // its header has come
    rx.open = true;
    rx.have = kTlsHeader;
    rx.next_sn = UINT32_MAX - 3;
    rx.next_record = rx.next_sn + kTlsNonce + kGcmTag;
  };
  expect_refused<TlsRx>(head, {{"no room for the tag", [](TlsRx& rx) { --rx.next_record; }, words},
                               {"some of the tag is there", [](TlsRx& rx) { rx.tag_done = 1; }, words}});
  const auto data = [](TlsRx& rx) {
    rx.open = true;
    rx.have = kMostTlsHead;
    rx.next_record = 100;
  };
  expect_refused<TlsRx>(data, {{"a tag in front of data", [](TlsRx& rx) { rx.tag_done = 15; }, words}});
}

TEST(HostileState, TrackedPages) {
  const char* const words = "pages are not tracked that way";
  const auto track = [](fw::PageTrackObject& o) {
    o.log_page = 12;
    o.log_message = 12;
    o.log_space = 56;
    o.ranges = 1;
  };
  expect_refused<fw::PageTrackObject>(
      track, {{"messages of no entry", [](fw::PageTrackObject& o) { o.log_message = 0; }, words},
              {"pages of a byte", [](fw::PageTrackObject& o) { o.log_page = 0; }, words},
              {"space", [](fw::PageTrackObject& o) { o.log_space = 57; }, words},
              {"ranges", [](fw::PageTrackObject& o) { o.ranges = 65; }, words}});
}

// Two functions' objects: those of one end while those of the other live on.
struct TwoFunctions {
  struct One {
    fw::Objects objects{fw::Options{}};
    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, objects);
    }
  };
  One first, second;
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, first, second);
  }
};

TEST(HostileState, ReferencesToObjectsOfAnotherFunction) {
  TwoFunctions two, other;
  std::uint32_t n = 0;
  fw::QpObject* qp = two.second.objects.qps.create(n);
  qp->pd = fw::Ref(two.second.objects.pds.create(n));
  EXPECT_EQ(refusal(state_of(two), other), "");
  two.first.objects.pds.create(n);
  qp->pd = fw::Ref(two.first.objects.pds.find(n));
  TwoFunctions third;
  EXPECT_NE(refusal(state_of(two), third).find("is not this function's"), std::string::npos);
}

TEST(HostileState, NumbersThatFirmwareGivesNobody) {
  const auto of_size = [](std::uint32_t size) {
    TaggedWriter out(kVersion);
    out.open("it", Type::kGroup);
    out.number("size", size);
    out.open("objects", Type::kList);
    out.close();
    out.close();
    return std::move(out).finish();
  };
  CqTable table, other;
  EXPECT_EQ(refusal(of_size(1u << 20), table), "");
  EXPECT_EQ(refusal(of_size((1u << 20) + 1), other), "it.size: there are no such numbers");
}

}  // namespace
}  // namespace hcasim::saved
