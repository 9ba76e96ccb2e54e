// SPDX-License-Identifier: BSD-3-Clause
// HCAs that are plugged in while simulated time runs.
#ifndef HCASIM_CARD_LATE_MODULES_H
#define HCASIM_CARD_LATE_MODULES_H

#include <array>
#include <systemc>

namespace hcasim::api {

// While there is one, modules can be made, and unmade, though the simulation runs. SystemC has a list of all
// of them, for what they do at the ends of elaboration and of the simulation (IEEE 1666, 4.4), and tells by a
// report that it enters no late one there. An HCA's do none of that: the agenda gives them their turns. So
// they are a hierarchy of objects like any other, though not in that list, and the report is passed over.
class LateModules {
 public:
  explicit LateModules(bool late) {
    if (!late) return;
    for (Report& report : reports_)
      report.usual = sc_core::sc_report_handler::set_actions(report.id, sc_core::SC_DO_NOTHING);
  }
  ~LateModules() {
    for (const Report& report : reports_) {
      if (report.usual != kUntouched) sc_core::sc_report_handler::set_actions(report.id, report.usual);
    }
  }
  LateModules(const LateModules&) = delete;
  LateModules& operator=(const LateModules&) = delete;

 private:
  static constexpr sc_core::sc_actions kUntouched = ~sc_core::sc_actions{0};
  struct Report {
    const char* id;
    sc_core::sc_actions usual = kUntouched;
  };
  std::array<Report, 2> reports_{{{sc_core::SC_ID_INSERT_MODULE_}, {sc_core::SC_ID_REMOVE_MODULE_}}};
};

}  // namespace hcasim::api
#endif
