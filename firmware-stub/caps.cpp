// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/caps.h"

#include <cstring>

#include "firmware-stub/command.h"
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "model/profile.h"
#include "model/tpt/tpt.h"

namespace hcasim::fw {

namespace {

// What power-on offers. A bit is set only when model and firmware do what it promises.
void fill_general(const Options& o, const Profile&, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  const auto set = [c](auto field, std::uint64_t v) {
    using F = decltype(field);
    prm::set<F>(c, static_cast<typename F::type>(v));
  };
  // Transports
  set(g::rc{}, 1);
  set(g::uc{}, 1);
  set(g::ud{}, 1);
  set(g::xrc{}, 1);  // domains and XRC SRQs; mlx5_ib does not load without
  // Table sizes
  set(g::log_max_qp{}, o.log_max_qp);
  set(g::log_max_qp_sz{}, 15);
  set(g::log_max_srq{}, o.log_max_srq);
  set(g::log_max_srq_sz{}, 15);
  set(g::log_max_cq{}, o.log_max_cq);
  set(g::log_max_cq_sz{}, 22);
  set(g::log_max_eq{}, 7);
  set(g::log_max_eq_sz{}, 22);
  set(g::max_num_eqs{}, o.num_eqs);
  set(g::log_max_mkey{}, o.log_max_mkey);
  set(g::log_max_pd{}, o.log_max_pd);
  set(g::log_max_xrcd{}, o.log_max_pd);
  set(g::log_max_rmp{}, o.log_max_srq);
  set(g::log_max_wq_sz{}, 15);
  set(g::max_qp_cnt{}, o.num_q_counters);
  set(g::max_qp_mcg{}, 240);
  set(g::log_max_mcg{}, 12);
  // WQEs
  set(g::max_wqe_sz_sq{}, 1024);
  set(g::max_wqe_sz_rq{}, 512);
  set(g::log_max_msg{}, 30);
  set(g::log_max_ra_req_qp{}, 4);
  set(g::log_max_ra_res_qp{}, 4);
  set(g::atomic{}, 1);
  // Memory
  set(g::log_pg_sz{}, 12);
  set(g::log_max_mrw_sz{}, 0x3f);
  set(g::max_indirection{}, Tpt::kMaxDepth);
  set(g::log_max_klm_list_size{}, 16);
  set(g::umr_extended_translation_offset{}, 1);
  set(g::umr_fence{}, 2);  // none needed after a UMR: the model executes it in order
  // CQs
  set(g::cqe_version{}, 1);
  set(g::cq_resize{}, 1);
  set(g::cq_moderation{}, 1);
  set(g::cq_oi{}, 1);
  // UARs
  set(g::bf{}, o.bf ? 1 : 0);
  set(g::log_bf_reg_size{}, 9);
  set(g::num_of_uars_per_page{}, 1);
  // Port
  set(g::port_type{}, 0);
  set(g::num_ports{}, 1);
  set(g::ib_virt{}, 1);
  set(g::local_ca_ack_delay{}, 16);
  set(g::vport_counters{}, 1);
  set(g::out_of_seq_cnt{}, 1);
  set(g::retransmission_q_counters{}, 1);
  set(g::enhanced_error_q_counters{}, 1);
  set(g::rts2rts_qp_counters_set_id{}, 1);
  // Firmware
  set(g::cmdif_checksum{}, 3);
  set(g::driver_version{}, 1);
  set(g::fast_teardown{}, 1);
  set(g::force_teardown{}, 1);
  set(g::device_frequency_mhz{}, 1000);
  set(g::device_frequency_khz{}, 1000000);
}

void fill_atomic(std::uint8_t* c) {
  using a = prm::atomic_caps;
  prm::set<a::supported_atomic_req_8B_endianness_mode_1>(c, 1);
  prm::set<a::atomic_operations>(c, 3);  // compare and swap, fetch and add
  prm::set<a::atomic_size_qp>(c, prm::k::ATOMIC_CAPS_ATOMIC_SIZE_QP_8_BYTES);
}

// Copies field F of a SET_HCA_CAP block if it does not exceed the maximum.
template <class F>
bool take(const std::uint8_t* in, const Caps::Block& max, Caps::Block& into) {
  if (prm::get<F>(in) > prm::get<F>(max.data())) return false;
  prm::set<F>(into.data(), prm::get<F>(in));
  return true;
}

}  // namespace

Caps::Caps(const Options& options, const Profile& profile) {
  fill_general(options, profile, general_max_.data());
  fill_atomic(atomic_max_.data());
  reset();
}

void Caps::reset() {
  general_ = general_max_;
  prm::set<prm::cmd_hca_cap::cmdif_checksum>(general_.data(), 0);
  atomic_ = atomic_max_;
}

const Caps::Block* Caps::current(std::uint16_t group) const {
  switch (static_cast<CapGroup>(group)) {
    case CapGroup::kGeneral:
      return &general_;
    case CapGroup::kAtomic:
      return &atomic_;
  }
  return nullptr;
}

const Caps::Block* Caps::maximum(std::uint16_t group) const {
  switch (static_cast<CapGroup>(group)) {
    case CapGroup::kGeneral:
      return &general_max_;
    case CapGroup::kAtomic:
      return &atomic_max_;
  }
  return nullptr;
}

Syndrome Caps::set(std::uint16_t group, const std::uint8_t* block) {
  using g = prm::cmd_hca_cap;
  using a = prm::atomic_caps;
  switch (static_cast<CapGroup>(group)) {
    case CapGroup::kGeneral: {
      Block next = general_;
      if (prm::get<g::log_max_qp>(block) < 8) return Syndrome::kCapValue;
      if (!take<g::log_max_qp>(block, general_max_, next)) return Syndrome::kCapValue;
      if (!take<g::cmdif_checksum>(block, general_max_, next)) return Syndrome::kCapValue;
      // pkey_table_size 0 (128 entries) and 4 KiB UAR pages are all there is: in `next` already. Everything
      // else must be as it was: a change that is not made must not be answered with success.
      if (std::memcmp(next.data(), block, kBytes) != 0) return Syndrome::kCapValue;
      general_ = next;
      return Syndrome::kOk;
    }
    case CapGroup::kAtomic: {
      // The driver sends the block with this one field set, the rest zero.
      const auto mode = prm::get<a::atomic_req_8B_endianness_mode>(block);
      if (mode > 1) return Syndrome::kCapValue;
      prm::set<a::atomic_req_8B_endianness_mode>(atomic_.data(), mode);
      return Syndrome::kOk;
    }
  }
  return Syndrome::kCapGroup;
}

bool Caps::atomic_host_endian() const {
  return prm::get<prm::atomic_caps::atomic_req_8B_endianness_mode>(atomic_.data()) == 1;
}

// op_mod: group << 1, bit 0: 1 current, 0 maximum.
Syndrome query_hca_cap(Firmware& fw, Command& cmd) {
  using in = prm::query_hca_cap_in;
  if (cmd.get<in::other_function>() != 0 || cmd.get<in::function_id>() != 0) return Syndrome::kFunction;
  const std::uint16_t group = cmd.op_mod >> 1;
  const Caps::Block* block = (cmd.op_mod & 1) != 0 ? fw.caps().current(group) : fw.caps().maximum(group);
  if (block == nullptr) return Syndrome::kCapGroup;
  std::memcpy(prm::ptr<prm::query_hca_cap_out::capability>(cmd.out.data()), block->data(), block->size());
  return Syndrome::kOk;
}

Syndrome set_hca_cap(Firmware& fw, Command& cmd) {
  using in = prm::set_hca_cap_in;
  if (cmd.get<in::other_function>() != 0 || cmd.get<in::function_id>() != 0) return Syndrome::kFunction;
  if ((cmd.op_mod & 1) != 0) return Syndrome::kOpMod;
  return fw.caps().set(cmd.op_mod >> 1, prm::ptr<in::capability>(cmd.in.data()));
}

}  // namespace hcasim::fw
