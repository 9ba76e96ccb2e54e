// SPDX-License-Identifier: BSD-3-Clause
// The steering unit's part for tables that software writes itself: SW ICM, the walk through it, and where the
// walk leads to: TIRs, the port, samplers, tables of the firmware.
#ifndef HCASIM_MODEL_STEER_SW_STEERING_H
#define HCASIM_MODEL_STEER_SW_STEERING_H

#include <algorithm>

#include "model/state/fields.h"
#include "model/steer/flow.h"
#include "model/steer/ste.h"

namespace hcasim {

class SwSteering final : public SwTables, private SteObjects {
 public:
  // format: what software writes; the first one if it writes none.
  SwSteering(FlowSteering& flows, SteFormat format)
      : flows_(flows), walker_(icm_, *this, format == SteFormat::kNone ? SteFormat::kConnectX5 : format) {
    flows.attach(*this);
  }

  SwIcm& icm() { return icm_; }
  void begin(unsigned work) override { work_left_ = std::min(work, SteWalker::kMaxWork); }
  unsigned work_left() const override { return work_left_; }
  void walk(FlowTableType type, std::uint64_t root, SteeredFrame frame, FlowSteering& steering,
            LookupTime* time) override;
  void lose() override { ++lost_; }
  // Frames that entries led nowhere, or that cost too much: discarded.
  std::uint64_t lost() const { return lost_; }
  void clear();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, icm_, lost_);
  }

 private:
  void count(std::uint32_t counter, std::uint32_t bytes) override;
  const std::vector<std::uint8_t>* tunnel_header(std::uint32_t reformat) override;
  const std::vector<std::uint8_t>* inserted_bytes(std::uint32_t reformat) override;
  const MatchDefiner* definer(std::uint32_t id) override;
  const std::uint8_t* header_arguments(std::uint32_t number) override {
    return flows_.header_arguments.line(number);
  }
  bool measure(std::uint32_t object, unsigned meter, unsigned before, unsigned reg,
               SteeredFrame& frame) override;

  FlowSteering& flows_;
  SwIcm icm_;
  SteWalker walker_;
  std::uint64_t lost_ = 0;
  unsigned work_left_ = 0;  // of the frame that is steered
};

}  // namespace hcasim
#endif
