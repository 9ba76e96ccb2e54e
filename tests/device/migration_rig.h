// SPDX-License-Identifier: BSD-3-Clause
// A card whose virtual functions are migrated, the physical function's commands for that, and a stream of
// messages between two functions.
#ifndef HCASIM_TESTS_DEVICE_MIGRATION_RIG_H
#define HCASIM_TESTS_DEVICE_MIGRATION_RIG_H

#include <memory>
#include <string>

#include "card/state/function_image.h"
#include "function_digest.h"
#include "ib_vf_rig.h"

namespace hcasim {

inline saved::FunctionImages& images() {
  static saved::FunctionImages them;
  return them;
}

// One for each program, as it lives as long as the SystemC kernel: of the link that is asked for first.
inline Card& migrating_card(fw::Link link = fw::Link::kInfiniBand) {
  static auto* made = new Card(link, 0, find_generation("connectx7"), &images());
  return *made;
}

enum Part : std::uint16_t { kFirst = 0, kThen = 1 };  // op_mod: what is held first goes on last

// One side of a stream of messages, each with its number.
struct Stream {
  static constexpr std::uint32_t kMessage = 1024, kSlots = 16;
  explicit Stream(bare::Device& d)
      : device(d),
        pd(d),
        send_cq(d),
        recv_cq(d),
        qp(d, pd, send_cq, recv_cq),
        buffer(d.memory().allocate(2 * kSlots * kMessage)),
        mr(d, bare::Mr::of(pd, buffer)) {}
  void connect(Stream& peer) {
    bare::QpAttr attr;
    attr.remote_qpn = peer.qp.qpn();
    attr.ack_timeout = 8;
    attr.grh = true;
    const auto gid = peer.device.gid(0);
    std::copy(gid.begin(), gid.end(), attr.dgid.begin());
    qp.connect(attr);
    for (std::uint32_t i = 0; i < kSlots; ++i) post_receive();
  }
  std::uint8_t* at(std::uint32_t slot) { return buffer.data() + std::size_t{slot} * kMessage; }
  bare::Sge sge(std::uint32_t slot) {
    return {mr.start() + std::uint64_t{slot} * kMessage, mr.key(), kMessage};
  }
  void post_receive() { qp.post_recv({sge(kSlots + posted++ % kSlots)}); }
  void fill(std::uint32_t slot, std::uint32_t number) {
    for (std::uint32_t i = 0; i < kMessage; i += 4) prm::store32(at(slot) + i, number * 2654435761u + i);
  }
  bool holds(std::uint32_t slot, std::uint32_t number) {
    for (std::uint32_t i = 0; i < kMessage; i += 4)
      if (prm::load32(at(slot) + i) != number * 2654435761u + i) return false;
    return true;
  }
  // Keeps so many messages under way.
  void pump(unsigned ahead) {
    while (const auto done = send_cq.poll()) {
      EXPECT_FALSE(done->error()) << done->text();
      EXPECT_EQ(done->wqe_counter, static_cast<std::uint16_t>(completed));
      ++completed;
    }
    while (sent < limit && sent - completed < ahead) {
      fill(sent % kSlots, sent);
      bare::SendWr wr;
      wr.sges = {sge(sent % kSlots)};
      qp.post(wr);
      ++sent;
    }
    while (const auto done = recv_cq.poll()) {
      EXPECT_FALSE(done->error()) << done->text();
      EXPECT_TRUE(holds(kSlots + received % kSlots, received)) << "message " << received;
      ++received;
      post_receive();
    }
  }
  bare::Device& device;
  bare::Pd pd;
  bare::Cq send_cq, recv_cq;
  bare::Qp qp;
  bare::Buffer buffer;
  bare::Mr mr;
  std::uint32_t sent = 0, completed = 0, received = 0, posted = 0, limit = ~0u;
};

class Migrating : public VfTest {
 public:
  explicit Migrating(Card& card = migrating_card()) : VfTest(card) {}

 protected:
  void TearDown() override {
    for (FunctionId f = 1; f <= kVfs; ++f) lead(f, f);
    VfTest::TearDown();
  }
  // The machine's function `bus` is the card's `f`.
  void lead(FunctionId bus, FunctionId f) {
    c.pcie[bus].lead_to(f);
    c.hosts[f].function = &c.machine.function(bus);
  }
  std::uint16_t id(FunctionId f) { return c.firmware.function(f).options().vhca_id; }
  CommandResult suspend(std::uint16_t vhca, std::uint16_t part) {
    Mailbox in(prm::op::SUSPEND_VHCA, prm::suspend_vhca_in::bytes, part);
    return pf.exec(in.set<prm::suspend_vhca_in::vhca_id>(vhca));
  }
  CommandResult resume(std::uint16_t vhca, std::uint16_t part) {
    Mailbox in(prm::op::RESUME_VHCA, prm::resume_vhca_in::bytes, part);
    return pf.exec(in.set<prm::resume_vhca_in::vhca_id>(vhca));
  }
  void stop(FunctionId f) {
    ASSERT_TRUE(suspend(id(f), kFirst).ok());
    ASSERT_TRUE(suspend(id(f), kThen).ok());
  }
  void go(FunctionId f) {
    ASSERT_TRUE(resume(id(f), kFirst).ok());
    ASSERT_TRUE(resume(id(f), kThen).ok());
  }
  CommandResult query(std::uint16_t vhca, bool incremental = false, bool in_chunks = false) {
    using In = prm::query_vhca_migration_state_in;
    Mailbox in(prm::op::QUERY_VHCA_MIGRATION_STATE, In::bytes);
    in.set<In::vhca_id>(vhca).set<In::incremental>(incremental).set<In::chunk>(in_chunks);
    return pf.exec(in, prm::query_vhca_migration_state_out::bytes);
  }
  std::uint32_t required(FunctionId f, bool incremental = false) {
    return query(id(f), incremental).must().get<prm::query_vhca_migration_state_out::required_umem_size>();
  }
  // Memory of the physical function's, as the driver lends it: from address 0 of a key.
  struct Lent {
    Lent(bare::Device& pf, const bare::Pd& pd, std::size_t bytes)
        : buffer(pf.memory().allocate(bytes)), mr(pf, spec(pd, buffer)) {}
    static bare::MkeySpec spec(const bare::Pd& pd, const bare::Buffer& b) {
      bare::MkeySpec s = bare::Mr::of(pd, b);
      s.start = 0;
      return s;
    }
    bare::Buffer buffer;
    bare::Mr mr;
  };
  Mailbox saving(std::uint16_t vhca, std::uint32_t key, std::uint32_t size, bool track, bool incremental) {
    using In = prm::save_vhca_state_in;
    Mailbox in(prm::op::SAVE_VHCA_STATE, In::bytes);
    in.set<In::vhca_id>(vhca).set<In::mkey>(key).set<In::size>(size);
    return in.set<In::set_track>(track).set<In::incremental>(incremental);
  }
  CommandResult save(std::uint16_t vhca, const Lent& to, bool track = false, bool incremental = false) {
    return pf.exec(
        saving(vhca, to.mr.key(), static_cast<std::uint32_t>(to.buffer.size()), track, incremental),
        prm::save_vhca_state_out::bytes);
  }
  CommandResult load(std::uint16_t vhca, const Lent& from, std::uint32_t size) {
    using In = prm::load_vhca_state_in;
    Mailbox in(prm::op::LOAD_VHCA_STATE, In::bytes);
    return pf.exec(in.set<In::vhca_id>(vhca).set<In::mkey>(from.mr.key()).set<In::size>(size));
  }
  // One record, into so much memory. next: what the one behind it needs.
  std::string record_of(FunctionId f, std::uint32_t room, bool track = false, bool incremental = false,
                        std::uint32_t* next = nullptr) {
    using Out = prm::save_vhca_state_out;
    bare::Pd pd(pf);
    Lent memory(pf, pd, room);
    const auto saved = pf.exec(saving(id(f), memory.mr.key(), room, track, incremental), Out::bytes).must();
    if (next != nullptr) *next = saved.get<Out::next_required_umem_size>();
    return {reinterpret_cast<const char*>(memory.buffer.data()), saved.get<Out::actual_image_size>()};
  }
  CommandResult load_record(FunctionId f, const std::string& record) {
    bare::Pd pd(pf);
    Lent memory(pf, pd, (record.size() + 4095) / 4096 * 4096);
    std::memcpy(memory.buffer.data(), record.data(), record.size());
    return load(id(f), memory, static_cast<std::uint32_t>(record.size()));
  }
  using Records = std::vector<std::string>;
  // As a driver that goes ahead while the function runs: until nothing has changed, or so many times.
  Records ahead_of(FunctionId f, int times) {
    Records records{record_of(f, required(f), true)};
    for (std::uint32_t more; times > 0 && (more = required(f, true)) != 0; --times)
      records.push_back(record_of(f, more, true, true));
    return records;
  }
  // In records of `room` bytes.
  Records in_chunks(FunctionId f, std::uint32_t room, bool incremental = false) {
    EXPECT_TRUE(query(id(f), incremental, true).ok());
    std::uint32_t next = 0;
    Records records{record_of(f, room, false, incremental, &next)};
    while (next != 0) records.push_back(record_of(f, room, false, true, &next));
    return records;
  }
  // The image itself, out of its record and into one.
  std::string image_of(FunctionId f) {
    fw::ImageReceiver receiver;
    EXPECT_EQ(receiver.take(record_of(f, required(f))), fw::ImageReceiver::Got::kUpdate);
    return images().updated("", receiver.update()).value();
  }
  // Without the number that each QP has anew whenever it is loaded.
  std::string settled_image_of(FunctionId f) {
    c.card.function(f).qps().for_each_qp([](Qp& qp) { qp.req.epoch = 0; });
    return image_of(f);
  }
  static std::string record_with(const std::string& image) {
    fw::ImageSender sender;
    sender.begin(image, images().update("", image), true);
    return sender.record(sender.left());
  }
  CommandResult load(FunctionId f, const std::string& image) { return load_record(f, record_with(image)); }
  enum class Way { kAtOnce, kAhead, kInChunks, kAheadInChunks };
  // From the function that the machine's `bus` is now to another one, which starts where it was held.
  void migrate(FunctionId from, FunctionId to, FunctionId bus, Way way = Way::kAtOnce) {
    const bool ahead = way == Way::kAhead || way == Way::kAheadInChunks;
    Records records;
    if (ahead) records = ahead_of(from, 2);
    stop(from);
    if (way == Way::kInChunks || way == Way::kAheadInChunks)
      for (std::string& record : in_chunks(from, 4096, ahead)) records.push_back(std::move(record));
    else
      records.push_back(record_of(from, required(from, ahead), false, ahead));
    c.card.reset(from);
    ASSERT_TRUE(enable(to).ok());
    stop(to);
    for (const std::string& record : records) {
      EXPECT_EQ(resume(id(to), kFirst).status,
                &record == &records[0] ? CmdStatus::kOk : CmdStatus::kBadResState);
      if (&record == &records[0]) {
        ASSERT_TRUE(suspend(id(to), kThen).ok());
      }
      ASSERT_TRUE(load_record(to, record).ok());
    }
    c.hosts[from].function = nullptr;
    lead(bus, to);
    go(to);
  }
  // Function 1, held, becomes function 2 by these records, which is the same as by all of it at once.
  void same_as_at_once(const Records& records) {
    const std::string image = image_of(1);
    c.card.reset(1);
    ASSERT_TRUE(enable(2).ok());
    stop(2);
    ASSERT_TRUE(load(2, image).ok());
    const std::string at_once = settled_image_of(2);
    c.card.reset(2);
    ASSERT_TRUE(enable(2).ok());
    stop(2);
    for (const std::string& record : records) ASSERT_TRUE(load_record(2, record).ok());
    EXPECT_TRUE(settled_image_of(2) == at_once);
    c.hosts[1].function = nullptr;
    lead(1, 2);
    go(2);
  }
  std::uint64_t digest(FunctionId f) {
    return digest_of(c.card.function(f)) * 31 + digest_of_tables(c.firmware.function(f));
  }
};

}  // namespace hcasim
#endif
