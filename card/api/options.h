// SPDX-License-Identifier: BSD-3-Clause
// The options of hca_create() and the faults of hca_inject(): two tables that parsing and help texts read.
#ifndef HCASIM_CARD_OPTIONS_H
#define HCASIM_CARD_OPTIONS_H

#include <optional>
#include <string>
#include <vector>

#include "firmware-stub/options.h"
#include "model/device.h"
#include "model/fault/spec.h"
#include "wire/address.h"

namespace hcasim::api {

struct Settings {
  std::string name;  // empty: hcaN
  std::string profile = "default";
  const Generation* generation = nullptr;  // null: the profile's
  std::string trace;                       // path; empty: off
  unsigned trace_ring = 0;                 // MiB of memory that the trace is kept in; 0: none
  std::string trace_filter;
  bool trace_on = true;
  std::string capture;      // path; empty: none
  std::string record;       // path; empty: none
  Time snapshot_every = 0;  // between the states in it; 0: none
  std::string cable;        // name of the HCA at the other end; empty: none
  std::string switch_name;  // of the switch that the port is on; empty: none
  std::string card;         // of the card of two ports that this is one of; empty: it has one
  bool host_wire = false;
  std::optional<wire::Address> wire;
  fw::Options firmware;
  PortFaults faults;
  std::string scenario_text;  // of the file that faults= names
  Scenario scenario;
  bool keep_link = true;  // KEEP_ETH_LINK_UP
  bool coupled = false;
  bool native = false;  // the blocks are SystemC processes
  traces::Rules::Mode rules = traces::Rules::Mode::kReport;
  unsigned breaches_logged = 1;  // of each rule; 0: all
  std::optional<Time> batch_window, wire_latency;
  std::optional<unsigned> dc_contexts;
  std::vector<std::string> parameters;  // of the profile: SECTION.KEY=VALUE
};

// "key=value,key=value"; a key with a dot in it is a parameter of the profile. False: `err` says what is
// wrong and what is allowed.
bool parse_options(const std::string& text, Settings& out, std::string& err);
// One line an option: "key  default  what it does".
const char* option_help();

// A fault to inject: what hca_inject() was asked for.
struct Fault {
  enum Kind { kPort, kHealth, kFatalHealth, kLink, kModelFault } kind = kPort;
  std::uint32_t number = 0;  // health syndrome; link: 1 up, 0 down
};
// Takes "key=value" pairs, or "none", which ends all faults; those of the port's fault generator go to
// `port`, each other one to `act`, and from fault=KIND on they are faults for the plan.
bool parse_faults(const std::string& text, Time now, PortFaults& port, std::vector<FaultSpec>& plan,
                  std::string& err, void (*act)(void*, const Fault&), void* context);
const char* fault_help();

}  // namespace hcasim::api
#endif
