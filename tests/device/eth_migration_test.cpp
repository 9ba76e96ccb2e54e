// SPDX-License-Identifier: BSD-3-Clause
// Virtual functions of an Ethernet card that go to others with the tables that their software has written.
#include "migration_rig.h"
#include "ste_writer.h"

namespace hcasim {
namespace {

using bare::Entry;
using bare::SteTir;
using prm::SteV1;
using Act = prm::SteV1Action;
using Dev = prm::device_mem_cap;

class EthMigrating : public Migrating {
 public:
  EthMigrating() : Migrating(migrating_card(fw::Link::kEthernet)) {}

 protected:
  void give(std::uint32_t vport, std::uint64_t mac) {
    using In = prm::modify_nic_vport_context_in;
    using Mac = In::nic_vport_context::permanent_address;
    Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(vport).set<In::field_select::permanent_address>(1);
    in.set<Mac::mac_addr_47_32>(mac >> 32).set<Mac::mac_addr_31_0>(mac & 0xffffffff);
    pf.exec(in).must();
  }
  static std::uint64_t icm_of(bare::Device& d) {
    return prm::get<Dev::steering_sw_icm_start_address>(bare::caps(d, 15).data());
  }
};

// Leads every frame on, with a tag.
Entry tagging(std::uint64_t to, std::uint32_t tag, std::uint32_t counter) {
  Entry e = bare::later_entry(to);
  prm::store32(e.bytes.data() + SteV1::kActions, Act::kFlowTag << 24 | tag);
  return e.set<SteV1::counter>(counter);
}

// What the sender's frames are to the function that has the address: led on by an entry of its software's.
class SteeredFrames {
 public:
  SteeredFrames(bare::Device& d, std::uint64_t icm, bare::Device& sender, std::uint64_t mac)
      : w_(d, icm), counter_(bare::make_flow_counter(d)), tir_(w_.link), sender_(sender), mac_(mac) {
    tag(1);
    table_ = std::make_unique<bare::EthObject>(w_.table(0, bare::kNicRxTable));
    rule_ = w_.lead_to(table_->number());
  }
  void tag(std::uint32_t tag) {
    w_.write(0, tagging(tir_.icm, tag, counter_.number()));
    tag_ = tag;
  }
  void expect_steered() {
    bare::Frame frame = bare::plain_frame(300, ++sent_);
    for (unsigned i = 0; i < 6; ++i) frame[i] = static_cast<std::uint8_t>(mac_ >> (40 - 8 * i));
    w_.link.rq.post({w_.link.rx_sge(0, 2048)});
    bare::expect_good(sender_.scq, sender_.send(frame));
    EXPECT_EQ(w_.link.rcq.wait_one().raw.sop_drop_qpn & 0xffffff, tag_);
    EXPECT_EQ(w_.link.received(0, 300), frame);
    EXPECT_EQ(bare::counted(w_.dev, counter_.number()), sent_);
  }

 private:
  bare::Writer w_;
  bare::EthObject counter_;
  SteTir tir_;
  bare::EthLink sender_;
  const std::uint64_t mac_;
  std::unique_ptr<bare::EthObject> table_, rule_;
  std::uint32_t tag_ = 0;
  unsigned sent_ = 0;
};

// And the address with them: who has been reset answers to none.
TEST_F(EthMigrating, TablesOfSoftwareGoAlong) {
  constexpr std::uint64_t kMac = 0x020000000001;
  give(1, kMac);
  auto vf = probed(1);
  {
    SteeredFrames frames(*vf, icm_of(*vf), pf, kMac);
    frames.expect_steered();
    migrate(1, 2, 1);
    frames.expect_steered();
    frames.tag(2);
    frames.expect_steered();
    // An entry is written after most of the image has been taken.
    Records records = ahead_of(2, 1);
    frames.tag(3);
    stop(2);
    records.push_back(record_of(2, required(2, true), false, true));
    c.card.reset(2);
    ASSERT_TRUE(enable(1).ok());
    stop(1);
    for (const std::string& record : records) ASSERT_TRUE(load_record(1, record).ok());
    lead(1, 1);
    lead(2, 2);
    go(1);
    frames.expect_steered();
  }
  vf->teardown();
}

}  // namespace
}  // namespace hcasim
