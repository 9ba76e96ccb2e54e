// SPDX-License-Identifier: BSD-3-Clause
// Virtual functions with drivers, and what their manager says of them.
#ifndef HCASIM_TESTS_FUZZ_ESWITCH_PARTS_H
#define HCASIM_TESTS_FUZZ_ESWITCH_PARTS_H

#include "flow_parts.h"
#include "world_cards.h"
#include "world_parts.h"

namespace hcasim::bare {

constexpr std::uint32_t kUplinkVport = 0xffff;

// A command of the manager's about a vport.
template <class In>
Mailbox about(std::uint16_t opcode, std::uint32_t vport, std::uint16_t op_mod = 0) {
  Mailbox in(opcode, In::bytes, op_mod);
  in.set<typename In::other_vport>(vport != 0);
  in.set<typename In::vport_number>(vport);
  return in;
}

inline CommandResult set_vport_mac(Device& manager, std::uint32_t vport, std::uint64_t mac) {
  using In = prm::modify_nic_vport_context_in;
  Mailbox in = about<In>(prm::op::MODIFY_NIC_VPORT_CONTEXT, vport);
  in.set<In::field_select::permanent_address>(1);
  in.set<In::nic_vport_context::permanent_address::mac_addr_47_32>(mac >> 32);
  in.set<In::nic_vport_context::permanent_address::mac_addr_31_0>(mac & 0xffffffff);
  return manager.exec(in);
}

// A function's driver, a link of frames, and a QP with memory.
struct Guest {
  Guest(Device& manager, std::uint32_t number, Function& function) : manager(manager), number(number) {
    if (number != 0) {
      enable(true).must();
      set_vport_mac(manager, number, 0x020000000010 + number).must();
    }
    own = std::make_unique<Device>(function, world_options());
    own->probe();
    open(*own);
  }
  // The manager itself.
  explicit Guest(Device& manager) : manager(manager), number(0) { open(manager); }
  ~Guest() {
    qp.reset(), mr.reset(), cq.reset(), link.reset(), own.reset();
    if (number != 0) enable(false);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  CommandResult enable(bool on) {
    if (on) {
      Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
      return manager.exec(in.set<prm::enable_hca_in::function_id>(number));
    }
    Mailbox in(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
    return manager.exec(in.set<prm::disable_hca_in::function_id>(number));
  }
  void open(Device& d) {
    link = std::make_unique<EthLink>(d);
    cq = std::make_unique<Cq>(d);
    qp = std::make_unique<Qp>(d, link->pd, *cq, *cq);
    mr = std::make_unique<Mr>(d, Mr::of(link->pd, link->rx, kAllAccess));
  }
  void write(const Guest& to, std::uint32_t bytes) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{mr->start(), mr->key(), bytes}};
    w.raddr = to.mr->start();
    w.rkey = to.mr->key();
    qp->post(w);
  }
  void send(const Frame& f, Dice& dice) {
    link->rq.post({link->rx_sge(0, 16384)});
    send_somehow(*link, f, dice);
  }

  Device& manager;
  std::uint32_t number;  // of its vport
  std::unique_ptr<Device> own;
  std::unique_ptr<EthLink> link;
  std::unique_ptr<Cq> cq;
  std::unique_ptr<Qp> qp;
  std::unique_ptr<Mr> mr;
};

}  // namespace hcasim::bare
#endif
