// SPDX-License-Identifier: BSD-3-Clause
// A card with two virtual functions.
#ifndef HCASIM_TESTS_DEVICE_VF_RIG_H
#define HCASIM_TESTS_DEVICE_VF_RIG_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

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

inline fw::Options with_vfs(fw::Link link) {
  fw::Options o;
  o.link = link;
  o.vfs = kVfs;
  return o;
}

struct Card {
  explicit Card(fw::Link link) : firmware("firmware", card, with_vfs(link)) {
    for (FunctionId f = 0; f <= kVfs; ++f) hosts[f].function = &machine.add_function(pcie[f]);
    sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  }
  SystemcClock clock;
  bare::Machine machine{std::size_t{64} << 20, clock};
  Profile profile;
  traces::Tracer tracer;
  FunctionHost hosts[3]{FunctionHost(machine.memory()), FunctionHost(machine.memory()),
                        FunctionHost(machine.memory())};
  Device card{"card", profile, {&hosts[0], &hosts[1], &hosts[2]}, tracer};
  fw::CardFirmware firmware;
  FunctionPcie pcie[3]{FunctionPcie(card, 0), FunctionPcie(card, 1), FunctionPcie(card, 2)};
};

}  // namespace hcasim
#endif
