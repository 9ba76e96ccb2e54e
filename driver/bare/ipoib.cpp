// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/ipoib.h"

#include "prm/ipoib.h"

namespace hcasim::bare {

namespace {
constexpr std::uint32_t kUd = 2, kMigrated = 3;  // qpc.st, pm_state
}

IpoibQp::IpoibQp(Device& device) : device_(device), epoch_(device.epoch()) {
  using In = prm::create_qp_in;
  using C = In::qpc;
  Mailbox in(prm::op::CREATE_QP, In::bytes);
  in.set<C::st>(kUd).set<C::pm_state>(kMigrated).set<C::ulp_stateless_offload_mode>(prm::kStatelessEnhanced);
  in.set<C::primary_address_path::vhca_port_num>(1).set<C::primary_address_path::grh>(1);
  qpn_ = static_cast<std::uint32_t>(
      device.exec(in, prm::create_qp_out::bytes).must().get<prm::create_qp_out::qpn>());
  live_ = true;
}

IpoibQp::~IpoibQp() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
}

void IpoibQp::start(std::uint32_t qkey, std::uint16_t pkey_index) {
  using Init = prm::rst2init_qp_in;
  Mailbox init(prm::op::RST2INIT_QP, Init::bytes);
  init.set<Init::qpn>(qpn_).set<Init::qpc::pm_state>(kMigrated).set<Init::qpc::q_key>(qkey);
  init.set<Init::qpc::primary_address_path::pkey_index>(pkey_index);
  init.set<Init::qpc::primary_address_path::vhca_port_num>(1);
  device_.exec(init).must();
  using Rtr = prm::init2rtr_qp_in;
  Mailbox rtr(prm::op::INIT2RTR_QP, Rtr::bytes);
  device_.exec(rtr.set<Rtr::qpn>(qpn_)).must();
  using Rts = prm::rtr2rts_qp_in;
  Mailbox rts(prm::op::RTR2RTS_QP, Rts::bytes);
  device_.exec(rts.set<Rts::qpn>(qpn_)).must();
}

CommandResult IpoibQp::to_reset() {
  using In = prm::qp_2rst_in;
  Mailbox in(prm::op::_2RST_QP, In::bytes);
  return device_.exec(in.set<In::qpn>(qpn_));
}

CommandResult IpoibQp::destroy() {
  using In = prm::destroy_qp_in;
  Mailbox in(prm::op::DESTROY_QP, In::bytes);
  auto r = device_.exec(in.set<In::qpn>(qpn_));
  if (r.ok()) live_ = false;
  return r;
}

}  // namespace hcasim::bare
