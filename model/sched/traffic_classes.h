// SPDX-License-Identifier: BSD-3-Clause
// Traffic classes of the port: which class a priority belongs to, and how classes share the port (Ethernet:
// IEEE 802.1Q clause 8.6.8, 37, enhanced transmission selection; InfiniBand: a class is a virtual lane,
// model/port/virtual_lanes.h, and a priority a service level). A class is in a group: groups are strict, the
// highest first, as far as no limit lets lower ones in between; within one, classes get the port in
// proportion to their shares (start-time fair queueing by bytes). A class may have a largest rate. A queue's
// priority is its TIS's or address path's (Qp::priority()).
//
// Who waits for the port waits in line, in his class. Classes matter only when queues of several do:
// otherwise the line is first come, first served.
#ifndef HCASIM_MODEL_SCHED_TRAFFIC_CLASSES_H
#define HCASIM_MODEL_SCHED_TRAFFIC_CLASSES_H

#include <array>
#include <cstdint>

#include "model/sched/rate_clock.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class TrafficClasses {
 public:
  static constexpr unsigned kCount = 8, kPriorities = 16;  // of Ethernet half as many
  static constexpr unsigned kGroups = 16;                  // ets_tcn_config_reg.group
  static constexpr std::uint32_t kShares = 100;            // of a group: percent
  static constexpr unsigned kMostShare = 255;              // where shares are weights

  // What firmware sets. As after power-on: class n of priority n, all in one group with equal shares.
  struct Class {
    std::uint8_t group = 7, share = kShares;
    std::uint8_t rate_unit = 0, rate_value = 0;  // as the register has them; unit 0: no limit

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, group, share, rate_unit, rate_value);
    }
  };
  void map(unsigned priority, unsigned tc) { settings_.map[priority] = static_cast<std::uint8_t>(tc); }
  unsigned of(unsigned priority) const { return settings_.map[priority & (kPriorities - 1)]; }
  const Class& operator[](unsigned tc) const { return settings_.classes[tc]; }
  void set_group(unsigned tc, unsigned group) {
    settings_.classes[tc].group = static_cast<std::uint8_t>(group);
  }
  void set_share(unsigned tc, unsigned percent) {
    settings_.classes[tc].share = static_cast<std::uint8_t>(percent);
  }
  // mbps 0: no limit.
  void set_rate(unsigned tc, unsigned unit, unsigned value, double mbps);
  // What higher groups may send at once while lower ones wait; 0: as much as they have.
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  void clear();

  // --- Hooks of Qos
  bool has_rate(unsigned tc) const { return rates_[tc].mbps > 0; }
  Time earliest(Time t, unsigned tc) const { return rates_[tc].earliest(t); }
  // What the class has sent counts while others wait too, and where it has a rate.
  bool counts(unsigned tc) const { return (waiting_mask_ & ~(1u << tc)) != 0 || has_rate(tc); }
  void sent(Time t, unsigned tc, std::uint64_t bytes);

  // --- Hooks of the scheduler. A queue of the class is in line, and no more.
  void waits(unsigned tc);
  void left(unsigned tc);
  // Queues of several classes are in line.
  bool mixed() const { return (waiting_mask_ & (waiting_mask_ - 1)) != 0; }
  // Whose turn it is of those in line; there is one.
  unsigned next();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, settings_, rates_, served_, reached_, waiting_, waiting_mask_, limit_, ahead_);
  }

 private:
  unsigned best_of(std::uint32_t mask) const;           // kCount: none
  bool waits_of_groups(unsigned tc, bool lower) const;  // than that of tc, or higher

  struct Settings {
    std::array<std::uint8_t, kPriorities> map{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
    std::array<Class, kCount> classes{};

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, map, classes);
      if constexpr (Archive::kLoads) {
        bool good = true;
        for (const std::uint8_t tc : map) good = good && tc < kCount;
        for (const Class& c : classes) good = good && c.group < kGroups;
        a.check(good, "there is no such traffic class or group");
      }
    }
  } settings_;
  std::array<RateClock, kCount> rates_{};
  // Bytes by share: of a class, and how far the one was that had its turn last, of a group. Who comes back
  // into line goes on from there: what it did not want is not made up for.
  std::array<double, kCount> served_{};
  std::array<double, kGroups> reached_{};
  std::array<std::uint32_t, kCount> waiting_{};
  std::uint32_t waiting_mask_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t ahead_ = 0;  // sent by higher groups since a lower one that waits had its turn
};

}  // namespace hcasim
#endif
