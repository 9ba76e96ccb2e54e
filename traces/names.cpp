// SPDX-License-Identifier: BSD-3-Clause
#include "traces/names.h"

#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "prm/cqe.h"
#include "prm/info.h"
#include "prm/packet.h"
#include "prm/wqe.h"
#include "traces/rules.h"

namespace hcasim::traces {
namespace {

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& n) { return strcasecmp(n.c_str(), name.c_str()) == 0; });
}

/// What has no name is shown, and asked for, as a number.
bool is_number(const std::string& name, std::uint64_t most) {
  if (name.size() <= 2 || strncasecmp(name.c_str(), "0x", 2) != 0 ||
      name.find_first_not_of("0123456789abcdefABCDEF", 2) != std::string::npos)
    return false;
  errno = 0;
  return std::strtoull(name.c_str(), nullptr, 16) <= most && errno == 0;
}

template <class Name>
std::vector<std::string> all_names(unsigned values, const std::string& prefix, Name name) {
  std::vector<std::string> names;
  for (unsigned v = 0; v < values; ++v)
    if (const char* const n = name(v)) names.push_back(prefix + n);
  return names;
}

std::string none(const char* what, const std::string& name, const std::vector<std::string>& names) {
  std::string text = std::string("there is no ") + what + " \"" + name + "\"; there are ";
  for (const std::string& n : names) text += (n == names.front() ? "" : ", ") + n;
  return text;
}

}  // namespace

std::string check_rule(const std::string& name) {
  const bool known = std::any_of(std::begin(kRuleInfo), std::end(kRuleInfo),
                                 [&](const RuleInfo& rule) { return name == rule.name; });
  return known ? "" : "there is no rule \"" + name + "\"; `hcasim rules` lists them";
}

std::string check_opcode(const std::string& name) {
  const auto posted =
      all_names(256, "", [](unsigned v) { return prm::wqe_op_name(static_cast<prm::WqeOp>(v)); });
  const auto packets = all_names(prm::bth::kOpMask + 1u, "pkt:", [](unsigned v) {
    return prm::bth_op_name(static_cast<prm::BthOp>(v));
  });
  const bool number = is_number(strncasecmp(name.c_str(), "pkt:", 4) == 0 ? name.substr(4) : name, 0xff);
  if (number || name == "?" || is_in(posted, name) || is_in(packets, name)) return "";
  return none("opcode", name, posted) + "; of packets whose WQE is not in the trace, such as " +
         packets.front();
}

std::string check_status(const std::string& name) {
  auto names =
      all_names(256, "", [](unsigned v) { return prm::cqe_syndrome_name(static_cast<prm::CqeSyndrome>(v)); });
  names.insert(names.begin(), {"error", "open"});
  return is_number(name, 0xff) || is_in(names, name) ? "" : none("status", name, names);
}

bool is_name(const std::string& value, const std::string& name, std::int64_t number) {
  if (strcasecmp(value.c_str(), name.c_str()) == 0) return true;
  return is_number(value, INT64_MAX) &&
         static_cast<std::int64_t>(std::strtoull(value.c_str(), nullptr, 16)) == number;
}

std::string check_command(const std::string& name) {
  if (is_number(name, 0xffff)) return "";
  for (unsigned opcode = 0; opcode <= 0xffff; ++opcode)
    if (strcasecmp(prm::opcode_name(static_cast<std::uint16_t>(opcode)).c_str(), name.c_str()) == 0)
      return "";
  return "there is no command \"" + name + "\"; `commands FILE` without --name shows those of the trace";
}

}  // namespace hcasim::traces
