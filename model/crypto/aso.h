// SPDX-License-Identifier: BSD-3-Clause
// What of a security association changes with its packets: the next sequence number or the window of those
// that may still come, and how many packets it has left (ipsec_aso, macsec_aso of mlx5_ifc.h, which are the
// same 64 bytes). Queues of its PD read it, and write single bits, by ACCESS_ASO; when it says so, something
// is reported once (event OBJECT_CHANGE), and its arm bit goes.
//
// As the driver has it (en_accel/macsec.c, ipsec_offload.c), since no document says more:
//   - mode INC_SN: mode_parameter is the number that the next packet gets.
//   - mode REPLAY_PROTECTION: mode_parameter is the lowest number that may still come; bit i of the window
//     (from the lowest bit of its last word) stands for the i-th number from there on.
//   - event esn: mode_parameter has passed 2^31 or 2^32, where the driver changes overlap and the high half.
//   - events of lifetime: the counter of packets, which goes down, is at the soft limit, at 0. At 0 with
//     remove_flow_enable the association is no more.
// That in mode 0 of an association with 64-bit numbers mode_parameter follows the highest number, so that its
// events come, is ours.
#ifndef HCASIM_MODEL_CRYPTO_ASO_H
#define HCASIM_MODEL_CRYPTO_ASO_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/state/fields.h"

namespace hcasim {

// What the packet's register C says (aso_return_reg). 1 is the driver's value for a replayed packet.
enum class AsoResult : std::uint8_t { kOk = 0, kReplayed = 1, kSpent = 2 };

class SaAso {
 public:
  static constexpr std::size_t kBytes = 64;
  using Context = std::array<std::uint8_t, kBytes>;

  SaAso() = default;
  // pd: of the queues that may access it. reg: the register C that says the result, 0 to 7. wide: sequence
  // numbers have 64 bits.
  SaAso(const std::uint8_t* context, std::uint32_t pd, std::uint8_t reg, bool wide);

  std::uint32_t pd() const { return pd_; }
  std::uint8_t reg() const { return reg_; }
  bool valid() const;
  const Context& context() const { return context_; }

  // A packet is sent: its number. Not kOk: none is left.
  AsoResult send(std::uint32_t& number);
  // A packet with that number is there, and is the sender's. kOk: it counts as received from here on.
  AsoResult receive(std::uint32_t number);
  // Something is to be reported since the last call.
  bool take_event() {
    const bool is = event_;
    event_ = false;
    return is;
  }

  // ACCESS_ASO, what stands behind the WQE's control segment; `before` becomes what was there before. False:
  // not to be done that way.
  bool access(const std::uint8_t* segments, std::size_t len, Context& before);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, context_, pd_, reg_, wide_, event_);
    if constexpr (Archive::kLoads) a.check(reg_ < 8, "there is no such register");
  }

 private:
  bool spent() const;
  void count_packet();
  void move_to(std::uint32_t number);
  bool seen(std::uint32_t offset) const;
  void shift(std::uint32_t by, std::uint32_t window);

  Context context_{};
  std::uint32_t pd_ = 0;
  std::uint8_t reg_ = 0;
  bool wide_ = false;
  bool event_ = false;
};

}  // namespace hcasim
#endif
