// SPDX-License-Identifier: BSD-3-Clause
// Quality of service: rate limiters by index, scheduling elements, and which queues use them.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_SCHED_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_SCHED_H

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "firmware-stub/command.h"
#include "firmware-stub/objects/ref.h"
#include "firmware-stub/objects/table.h"
#include "model/sched/qos.h"
#include "model/state/fields.h"
#include "prm/prm.h"
#include "prm/qos.h"

namespace hcasim::fw {

enum class ObjType : std::uint8_t;
class Firmware;

constexpr unsigned kLogQueueGroups = 7;
constexpr std::uint32_t kMaxBwShare = 100;       // per cent, as drivers give it
constexpr std::uint32_t kMaxPace = 100'000'000;  // kb/s
constexpr std::uint32_t kMinPace = 1;
// scheduling_context.element_type
constexpr std::uint32_t kElementTsar = 0, kElementVport = 1, kElementQueueGroup = 4;
constexpr unsigned kLogSwitchTreeDepth = 3;

struct SchedObject : Referred {
  std::array<std::uint8_t, prm::scheduling_context::bytes> context{};
  std::uint32_t type() const { return prm::get<prm::scheduling_context::element_type>(context.data()); }
  std::uint32_t parent() const {
    return prm::get<prm::scheduling_context::parent_element_id>(context.data());
  }
  // The vport that an element of the E-Switch's tree is for.
  std::uint16_t vport() const {
    return static_cast<std::uint16_t>(
        prm::get<prm::sched_attributes<prm::scheduling_context>>(context.data()) & 0xffff);
  }
  std::uint8_t hierarchy = 0;
  Ref<SchedObject> parent_ref;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, context, hierarchy, parent_ref);
  }
};

// Queue by kind and number -> its groups: of requests, of responses.
using SchedUsers = std::map<std::pair<ObjType, std::uint32_t>, std::array<Ref<SchedObject>, 2>>;

// Whether the command may name `group` as a queue's group (0: none).
Syndrome check_queue_group(Firmware& fw, const Command& cmd, std::uint32_t group);
// `type`: kQp or kSq. Groups are good; 0: none.
void set_queue_groups(Firmware& fw, ObjType type, std::uint32_t number, std::uint32_t requester,
                      std::uint32_t responder);
// The queue is gone.
void release_queue_groups(Firmware& fw, ObjType type, std::uint32_t number);
// Whether the command may name the rate limiter (0: none).
Syndrome check_pace(Firmware& fw, const Command& cmd, std::uint32_t index);

}  // namespace hcasim::fw
#endif
