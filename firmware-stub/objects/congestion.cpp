// SPDX-License-Identifier: BSD-3-Clause
// Congestion control of RoCE v2: switches of a priority, parameters, statistics. Protocols: reaction point
// and notification point (numbers as Linux, drivers/infiniband/hw/mlx5/cong.c, uses them); others are not
// offered. Ranges: NVIDIA DOCA documentation, "DCQCN CC Parameters"; where it names none, the width of the
// value in the card's configuration (mstflint, roce_cc_ecn).
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kReactionPoint = 1, kNotificationPoint = 2;
constexpr unsigned kPriorities = 8;

constexpr std::uint64_t k17Bits = (1u << 17) - 1, k15Bits = (1u << 15) - 1;

bool known(std::uint32_t protocol) { return protocol == kReactionPoint || protocol == kNotificationPoint; }

void set_bit(std::uint8_t& mask, unsigned bit, bool on) {
  mask = static_cast<std::uint8_t>((mask & ~(1u << bit)) | (on ? 1u << bit : 0u));
}

// Takes the fields that a field_select names, if they are what is allowed.
class Selected {
 public:
  Selected(const Command& cmd, std::uint32_t select) : cmd_(cmd), left_(select) {}
  template <class F, class T>
  void take(unsigned bit, T& value, std::uint64_t low, std::uint64_t high) {
    const std::uint32_t mask = 1u << bit;
    taken_ |= mask;
    if ((left_ & mask) == 0) return;
    const std::uint64_t v = cmd_.get<F>();
    if (v < low || v > high) good_ = false;
    value = static_cast<T>(v);
  }
  // All values were allowed, and no bit was set that names nothing.
  bool good() const { return good_ && (left_ & ~taken_) == 0; }

 private:
  const Command& cmd_;
  std::uint32_t left_, taken_ = 0;
  bool good_ = true;
};

}  // namespace

Syndrome query_cong_status(Firmware& fw, Command& cmd) {
  using in = prm::query_cong_status_in;
  using out = prm::query_cong_status_out;
  const std::uint32_t protocol = cmd.get<in::cong_protocol>(), priority = cmd.get<in::priority>();
  if (!known(protocol)) return Syndrome::kCongProtocol;
  if (priority >= kPriorities) return Syndrome::kCongPriority;
  const CongestionControl& cc = fw.device().cc();
  const bool rp = protocol == kReactionPoint;
  cmd.put<out::enable>((rp ? cc.rp_enabled : cc.np_enabled) >> priority & 1);
  cmd.put<out::tag_enable>((rp ? cc.rp_tag : cc.np_tag) >> priority & 1);
  return Syndrome::kOk;
}

Syndrome modify_cong_status(Firmware& fw, Command& cmd) {
  using in = prm::modify_cong_status_in;
  const std::uint32_t protocol = cmd.get<in::cong_protocol>(), priority = cmd.get<in::priority>();
  if (!known(protocol)) return Syndrome::kCongProtocol;
  if (priority >= kPriorities) return Syndrome::kCongPriority;
  CongestionControl& cc = fw.device().cc();
  const bool rp = protocol == kReactionPoint;
  set_bit(rp ? cc.rp_enabled : cc.np_enabled, priority, cmd.get<in::enable>() != 0);
  set_bit(rp ? cc.rp_tag : cc.np_tag, priority, cmd.get<in::tag_enable>() != 0);
  return Syndrome::kOk;
}

Syndrome query_cong_params(Firmware& fw, Command& cmd) {
  using out = prm::query_cong_params_out::congestion_parameters;
  using rp = out::cong_control_r_roce_ecn_rp;
  using np = out::cong_control_r_roce_ecn_np;
  switch (cmd.get<prm::query_cong_params_in::cong_protocol>()) {
    case kReactionPoint: {
      const ReactionParams& p = fw.device().cc().rp;
      cmd.put<rp::clamp_tgt_rate>(p.clamp_tgt_rate);
      cmd.put<rp::clamp_tgt_rate_after_time_inc>(p.clamp_tgt_rate_after_time_inc);
      cmd.put<rp::rpg_time_reset>(p.time_reset);
      cmd.put<rp::rpg_byte_reset>(p.byte_reset);
      cmd.put<rp::rpg_threshold>(p.threshold);
      cmd.put<rp::rpg_max_rate>(p.max_rate);
      cmd.put<rp::rpg_ai_rate>(p.ai_rate);
      cmd.put<rp::rpg_hai_rate>(p.hai_rate);
      cmd.put<rp::rpg_gd>(p.gd);
      cmd.put<rp::rpg_min_dec_fac>(p.min_dec_fac);
      cmd.put<rp::rpg_min_rate>(p.min_rate);
      cmd.put<rp::rate_to_set_on_first_cnp>(p.rate_to_set_on_first_cnp);
      cmd.put<rp::dce_tcp_g>(p.dce_tcp_g);
      cmd.put<rp::dce_tcp_rtt>(p.dce_tcp_rtt);
      cmd.put<rp::rate_reduce_monitor_period>(p.rate_reduce_monitor_period);
      cmd.put<rp::initial_alpha_value>(p.initial_alpha_value);
      return Syndrome::kOk;
    }
    case kNotificationPoint: {
      const NotificationParams& p = fw.device().cc().np;
      cmd.put<np::min_time_between_cnps>(p.min_time_between_cnps);
      cmd.put<np::cnp_dscp>(p.cnp_dscp);
      cmd.put<np::cnp_prio_mode>(p.cnp_prio_mode);
      cmd.put<np::cnp_802p_prio>(p.cnp_802p_prio);
      return Syndrome::kOk;
    }
    default:
      return Syndrome::kCongProtocol;
  }
}

Syndrome modify_cong_params(Firmware& fw, Command& cmd) {
  using in = prm::modify_cong_params_in;
  using rp = in::congestion_parameters::cong_control_r_roce_ecn_rp;
  using np = in::congestion_parameters::cong_control_r_roce_ecn_np;
  CongestionControl& cc = fw.device().cc();
  // Configuration of cards with roce_cc_ecn_32b_rate takes 32 bits (mstflint).
  const std::uint64_t most_bytes = fw.options().generation->has.cc_32_bits ? UINT32_MAX : k15Bits;
  const auto line = static_cast<std::uint64_t>(fw.device().profile().port.rate_gbps * 1000);
  switch (cmd.get<in::cong_protocol>()) {
    case kReactionPoint: {
      ReactionParams p = cc.rp;
      Selected s(cmd, cmd.get<in::field_select::field_select_r_roce_rp::field_select_r_roce_rp>());
      s.take<rp::clamp_tgt_rate>(1, p.clamp_tgt_rate, 0, 1);
      s.take<rp::clamp_tgt_rate_after_time_inc>(2, p.clamp_tgt_rate_after_time_inc, 0, 1);
      s.take<rp::rpg_time_reset>(3, p.time_reset, 0, k17Bits);
      s.take<rp::rpg_byte_reset>(4, p.byte_reset, 0, most_bytes);
      s.take<rp::rpg_threshold>(5, p.threshold, 0, 31);
      s.take<rp::rpg_max_rate>(6, p.max_rate, 0, line);
      s.take<rp::rpg_ai_rate>(7, p.ai_rate, 0, line);
      s.take<rp::rpg_hai_rate>(8, p.hai_rate, 0, line);
      s.take<rp::rpg_min_dec_fac>(9, p.min_dec_fac, 0, 100);
      s.take<rp::rpg_min_rate>(10, p.min_rate, 1, line);
      s.take<rp::rate_to_set_on_first_cnp>(11, p.rate_to_set_on_first_cnp, 0, line);
      s.take<rp::dce_tcp_g>(12, p.dce_tcp_g, 0, 1023);
      s.take<rp::dce_tcp_rtt>(13, p.dce_tcp_rtt, 1, k17Bits);
      s.take<rp::rate_reduce_monitor_period>(14, p.rate_reduce_monitor_period, 1, UINT32_MAX);
      s.take<rp::initial_alpha_value>(15, p.initial_alpha_value, 1, 1023);
      s.take<rp::rpg_gd>(16, p.gd, 0, 15);
      if (!s.good()) return Syndrome::kCongParameter;
      cc.rp = p;
      return Syndrome::kOk;
    }
    case kNotificationPoint: {
      NotificationParams p = cc.np;
      Selected s(cmd, cmd.get<in::field_select::field_select_r_roce_np::field_select_r_roce_np>());
      s.take<np::min_time_between_cnps>(2, p.min_time_between_cnps, 0, k17Bits);
      s.take<np::cnp_dscp>(3, p.cnp_dscp, 0, 63);
      // One bit for both: the driver has none for cnp_802p_prio.
      s.take<np::cnp_prio_mode>(4, p.cnp_prio_mode, 0, 1);
      s.take<np::cnp_802p_prio>(4, p.cnp_802p_prio, 0, 7);
      if (!s.good()) return Syndrome::kCongParameter;
      cc.np = p;
      return Syndrome::kOk;
    }
    default:
      return Syndrome::kCongProtocol;
  }
}

Syndrome query_cong_statistics(Firmware& fw, Command& cmd) {
  using out = prm::query_cong_statistics_out;
  CongestionControl& cc = fw.device().cc();
  const CongestionControl::Statistics& s = cc.statistics();
  const auto put = [&cmd](auto high, auto low, std::uint64_t v) {
    cmd.put<decltype(high)>(static_cast<std::uint32_t>(v >> 32));
    cmd.put<decltype(low)>(static_cast<std::uint32_t>(v));
  };
  cmd.put<out::rp_cur_flows>(cc.current_flows());
  cmd.put<out::sum_flows>(static_cast<std::uint32_t>(s.sum_flows));
  put(out::rp_cnp_ignored_high{}, out::rp_cnp_ignored_low{}, s.rp_cnp_ignored);
  put(out::rp_cnp_handled_high{}, out::rp_cnp_handled_low{}, s.rp_cnp_handled);
  put(out::time_stamp_high{}, out::time_stamp_low{},
      static_cast<std::uint64_t>(cmd.now / from_ns(1000)));  // us
  put(out::np_ecn_marked_roce_packets_high{}, out::np_ecn_marked_roce_packets_low{},
      s.np_ecn_marked_roce_packets);
  put(out::np_cnp_sent_high{}, out::np_cnp_sent_low{}, s.np_cnp_sent);
  // The card's: whoever may not change how it works does not clear them either.
  const bool may = !fw.options().vf && cmd.uid == 0;
  if (may && cmd.get<prm::query_cong_statistics_in::clear>() != 0) cc.clear_statistics();
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
