// SPDX-License-Identifier: BSD-3-Clause
// The table of faults for people.
#include "model/fault/spec.h"

#include <algorithm>

namespace hcasim {

namespace {

using traces::FaultMoment;
using traces::kFaultActionInfo;
using traces::kFaultKeyInfo;
using traces::kFaultKeys;
using traces::kFaultKinds;

std::string key_names(traces::FaultKeys keys) {
  std::string list;
  for (unsigned i = 0; i < kFaultKeys; ++i)
    if ((keys >> i & 1) != 0) list += (list.empty() ? "" : ", ") + std::string(kFaultKeyInfo[i].name);
  return list;
}

std::string strikes(const traces::FaultTypeInfo& k) {
  switch (k.moment) {
    case FaultMoment::kOnEvent:
      return std::string("strikes: ") + k.event;
    case FaultMoment::kAtTime:
      return "acts at a time (at; at once if none is given)";
    case FaultMoment::kEither:
      return std::string("acts at a time (at), or strikes: ") + k.event;
  }
  return {};
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string errors(const char* between) {
  std::string modules, pcie;
#define HCASIM_X(value, name) modules += (modules.empty() ? "" : between) + std::string(name);
  HCASIM_MODULE_ERRORS(HCASIM_X)
#undef HCASIM_X
  for (const PcieErrorName& e : pcie_errors()) pcie += (pcie.empty() ? "" : between) + std::string(e.name);
  return "module: " + modules + ".\npcie: " + pcie + ".\n";
}

constexpr const char* kHow =
    "In a scenario (option faults=FILE) each fault is a table, `seed` starts all random numbers:\n\n"
    "    seed = 7\n"
    "    [[fault]]\n"
    "    kind = \"command\"\n"
    "    opcode = \"CREATE_CQ\"\n"
    "    nth = 2\n"
    "    status = \"BAD_RES_STATE\"\n\n"
    "While the machine runs the same is one line, for hca_inject() or QEMU's qom-set of `inject`; ',' or ';' "
    "part\nthe keys, each fault= begins a fault, `none` ends all:\n\n"
    "    fault=command,opcode=CREATE_CQ,nth=2,status=BAD_RES_STATE\n\n"
    "Times have a unit (ps, ns, us, ms, s; none: ns). Numbers are decimal, or hexadecimal with 0x.\n";

}  // namespace

std::string fault_text(const FaultType* only) {
  std::string out;
  for (unsigned i = 0; i < kFaultKinds; ++i) {
    const auto kind = static_cast<FaultType>(i);
    if (only != nullptr && *only != kind) continue;
    const auto& k = traces::info(kind);
    out += padded(k.name, 14) + k.help + "\n" + std::string(14, ' ') + strikes(k) + "\n";
    out += std::string(14, ' ') + "keys: " + key_names(own_keys(kind)) + "\n";
    const char* said = "action:";
    for (const auto& a : kFaultActionInfo) {
      if (a.kind != kind) continue;
      out += std::string(14, ' ') + padded(said, 8) + padded(a.name, 14) + a.help + "\n";
      said = "";
    }
  }
  if (only != nullptr) return out;
  out += "\nkeys:\n";
  for (const auto& k : kFaultKeyInfo) out += padded(k.name, 14) + k.help + " (" + k.allowed + ")\n";
  return out + "\nvalues of error:\n" + errors(", ") + "\n" + kHow;
}

std::string fault_page() {
  std::string out = "# Faults\n\nWhat can be broken on purpose. Written by `hcasim faults --page`.\n\n";
  out += kHow;
  out += "\n## Kinds\n";
  for (unsigned i = 0; i < kFaultKinds; ++i) {
    const auto kind = static_cast<FaultType>(i);
    const auto& k = traces::info(kind);
    out += "\n### " + std::string(k.name) + "\n\n" + k.help + ". It " + strikes(k) + ".\n\nKeys: `" +
           key_names(own_keys(kind)) + "`; trigger: `" + key_names(trigger_keys(kind)) +
           "`.\n\n| Action | What happens |\n|---|---|\n";
    for (const auto& a : kFaultActionInfo)
      if (a.kind == kind) out += "| `" + std::string(a.name) + "` | " + a.help + " |\n";
  }
  out += "\n## Keys\n\n| Key | Allowed | What it says |\n|---|---|---|\n";
  for (const auto& k : kFaultKeyInfo)
    out += "| `" + std::string(k.name) + "` | " + k.allowed + " | " + k.help + " |\n";
  return out + "\n## Values of `error`\n\n" + errors(", ");
}

}  // namespace hcasim
