// SPDX-License-Identifier: BSD-3-Clause
// A card with two virtual functions, and sub-functions behind them.
#ifndef HCASIM_TESTS_DEVICE_VF_RIG_H
#define HCASIM_TESTS_DEVICE_VF_RIG_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "card_rig.h"
#include "driver/bare/cq.h"
#include "driver/bare/device.h"
#include "driver/bare/mr.h"
#include "driver/bare/qp.h"
#include "firmware-stub/card_firmware.h"
#include "prm/init_seg.h"

namespace hcasim {

using bare::CmdStatus;
using bare::CommandResult;
using bare::Mailbox;
constexpr FunctionId kVfs = 2;

inline fw::Options with_vfs(fw::Link link, unsigned sfs, bool crypto) {
  fw::Options o;
  o.crypto = crypto;
  o.link = link;
  o.vfs = kVfs;
  o.sfs = sfs;
  return o;
}

struct Card {
  explicit Card(fw::Link link, unsigned sfs = 0, const Generation* generation = nullptr,
                fw::FunctionImages* images = nullptr, bool crypto = false)
      : profile(of(generation)),
        card("card", profile, ports(sfs), tracer, sfs),
        firmware("firmware", card, with_vfs(link, sfs, crypto), images) {
    for (FunctionId f = 0; f < card.functions(); ++f) {
      bare::Function* made = &machine.add_function(pcie.emplace_back(card, f));
      if (f <= kVfs)
        hosts[f].function = made;
      else
        hosts[0].sub_functions.push_back(made);
    }
    sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  }
  SystemcClock clock;
  bare::Machine machine{std::size_t{64} << 20, clock};
  Profile profile;
  traces::Tracer tracer;
  FunctionHost hosts[3]{FunctionHost(machine.memory()), FunctionHost(machine.memory()),
                        FunctionHost(machine.memory())};
  Device card;
  fw::CardFirmware firmware;
  std::deque<FunctionPcie> pcie;

 private:
  static Profile of(const Generation* generation) {
    Profile p;
    if (generation != nullptr) p.generation = generation;
    return p;
  }
  std::vector<HostPort*> ports(unsigned sfs) {
    std::vector<HostPort*> all{&hosts[0], &hosts[1], &hosts[2]};
    all.insert(all.end(), sfs, &hosts[0]);
    return all;
  }
};

// A function's driver with a QP and a region of memory.
struct End {
  static constexpr std::uint32_t kBytes = 16 << 10;
  explicit End(bare::Device& d)
      : device(d),
        pd(d),
        cq(d),
        qp(d, pd, cq, cq),
        buffer(d.memory().allocate(kBytes)),
        mr(d, bare::Mr::of(pd, buffer)) {}
  void connect(End& peer) {
    bare::QpAttr attr;
    attr.remote_qpn = peer.qp.qpn();
    attr.retry_count = 1;
    attr.ack_timeout = 8;
    if (device.ethernet()) {
      attr.roce.dgid = peer.device.roce_entry(0).gid;
      attr.roce.dmac = peer.device.mac();
    } else {
      attr.grh = true;
      const auto gid = peer.device.gid(0);
      std::copy(gid.begin(), gid.end(), attr.dgid.begin());
    }
    qp.connect(attr);
  }
  void post_write(const End& peer) {
    bare::SendWr wr;
    wr.op = bare::WqeOp::kRdmaWrite;
    wr.sges = {{mr.start(), mr.key(), kBytes}};
    wr.raddr = peer.mr.start();
    wr.rkey = peer.mr.key();
    qp.post(wr);
  }
  bool write(const End& peer, std::uint8_t seed) {
    for (std::uint32_t i = 0; i < kBytes; ++i) buffer.data()[i] = static_cast<std::uint8_t>(seed + i * 7);
    post_write(peer);
    return !cq.wait_one().error() && std::memcmp(buffer.data(), peer.buffer.data(), kBytes) == 0;
  }
  bare::Device& device;
  bare::Pd pd;
  bare::Cq cq;
  bare::Qp qp;
  bare::Buffer buffer;
  bare::Mr mr;
};

// The card, its physical function's driver up.
class VfTest : public ::testing::Test {
 public:
  explicit VfTest(Card& card) : c(card) {}

 protected:
  void SetUp() override {
    c.card.reset();
    pf.probe();
  }
  void TearDown() override { EXPECT_EQ(c.machine.memory().stray_writes(), 0u); }

  CommandResult enable(std::uint32_t function, bool on = true) {
    if (!on) {
      Mailbox in(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
      return pf.exec(in.set<prm::disable_hca_in::function_id>(function));
    }
    Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
    return pf.exec(in.set<prm::enable_hca_in::function_id>(function));
  }
  std::unique_ptr<bare::Device> probed(FunctionId f) {
    EXPECT_TRUE(enable(f).ok());
    auto device = std::make_unique<bare::Device>(c.machine.function(f));
    device->probe();
    return device;
  }
  // A command of the manager's about a vport.
  template <class In>
  static Mailbox about(std::uint16_t opcode, std::uint32_t vport, std::uint16_t op_mod = 0) {
    Mailbox in(opcode, In::bytes, op_mod);
    in.set<typename In::other_vport>(1);
    in.set<typename In::vport_number>(vport);
    return in;
  }

  enum : std::uint32_t { kDown = 0, kUp = 1, kFollow = 2 };  // what a vport's link is made to do

  Card& c;
  bare::Device pf{c.machine.function(0)};
};

// The general capabilities that a function may have, as its manager is told.
inline std::vector<std::uint8_t> general_caps_of(bare::Device& manager, std::uint32_t function) {
  using Query = prm::query_hca_cap_in;
  Mailbox in(prm::op::QUERY_HCA_CAP, Query::bytes, 0);
  in.set<Query::other_function>(1).set<Query::function_id>(function);
  const auto all = manager.exec(in, prm::query_hca_cap_out::bytes).must().out;
  return {all.begin() + prm::query_hca_cap_out::capability::bit_off / 8, all.end()};
}

// SET_HCA_CAP of a function with these, in which the kernel changes one field.
inline Mailbox set_caps_of(std::uint32_t function, const std::vector<std::uint8_t>& caps,
                           std::uint16_t op_mod = 0) {
  using Set = prm::set_hca_cap_in;
  Mailbox in(prm::op::SET_HCA_CAP, Set::bytes, op_mod);
  in.set<Set::other_function>(1).set<Set::function_id>(function);
  std::copy(caps.begin(), caps.end(), in.begin() + Set::capability::bit_off / 8);
  return in;
}

}  // namespace hcasim
#endif
