// SPDX-License-Identifier: BSD-3-Clause
#include "model/fault/spec.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "prm/cmd_queue.h"
#include "prm/eqe.h"
#include "prm/info.h"
#include "prm/packet.h"

namespace hcasim {

namespace {

using traces::FaultMoment;
using traces::FaultValue;
using traces::kFaultActions;
using traces::kFaultKeys;
using traces::kFaultKinds;

constexpr double kLongest = 1e18;  // ps: 11 days
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 32;
constexpr std::size_t kEventData = sizeof(prm::Eqe::data);

bool whole(const std::string& text, std::uint64_t& out) {
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  char* end = nullptr;
  errno = 0;
  out = std::strtoull(text.c_str(), &end, 0);
  return errno == 0 && *end == 0;
}

bool range(const std::string& text, FaultSpec::Range& out) {
  const std::size_t dash = text.find('-');
  if (dash == std::string::npos) {
    if (!whole(text, out.low)) return false;
    out.high = out.low;
    return true;
  }
  return whole(text.substr(0, dash), out.low) && whole(text.substr(dash + 1), out.high) &&
         out.low <= out.high;
}

// Names as they are written here and there: CREATE_CQ, create-cq.
std::string plain(std::string text) {
  for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool choice(const std::string& text, std::initializer_list<std::pair<const char*, std::uint64_t>> names,
            std::uint64_t& out) {
  for (const auto& [name, value] : names) {
    if (text != name) continue;
    out = value;
    return true;
  }
  return false;
}

bool opcode(FaultType kind, const std::string& text, std::uint64_t& out) {
  if (kind == FaultType::kWire) {
    for (unsigned i = 0; i < 0x20; ++i) {
      const char* name = prm::bth_op_name(static_cast<prm::BthOp>(i));
      if (name == nullptr || plain(text) != name) continue;
      out = i;
      return true;
    }
    return whole(text, out) && out <= 0xff;
  }
  for (unsigned i = 0; i < prm::tables::kOpcodeCount; ++i) {
    if (plain(text) != prm::tables::kOpcodes[i].name) continue;
    out = prm::tables::kOpcodes[i].value;
    return true;
  }
  return whole(text, out) && out <= 0xffff;
}

bool status(const std::string& text, std::uint64_t& out) {
  for (unsigned i = 1; i < 0x100; ++i) {
    const char* name = prm::cmd_status_name(static_cast<prm::CmdStatus>(i));
    if (name == nullptr || *name == 0) continue;
    // The kernel's names have an _ERR behind them.
    if (plain(text) != name && plain(text) != std::string(name) + "_ERR") continue;
    out = i;
    return true;
  }
  return whole(text, out) && out >= 1 && out <= 0xff;
}

bool eqe_type(const std::string& text, std::uint64_t& out) {
  for (unsigned i = 0; i < 0x100; ++i) {
    const char* name = prm::eqe_type_name(static_cast<prm::EqeType>(i));
    if (name == nullptr || plain(text) != name) continue;
    out = i;
    return true;
  }
  return whole(text, out) && out <= 0xff;
}

bool error(FaultType kind, const std::string& text, std::uint64_t& out) {
  if (kind == FaultType::kPcie) {
    const auto& list = pcie_errors();
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const PcieErrorName& e) { return text == e.name; });
    out = static_cast<std::uint64_t>(found - list.begin());
    return found != list.end();
  }
#define HCASIM_X(value, name) {name, value},
  return choice(text, {HCASIM_MODULE_ERRORS(HCASIM_X)}, out) || (whole(text, out) && out <= 0xf);
#undef HCASIM_X
}

bool hex_bytes(const std::string& text, std::vector<std::uint8_t>& out) {
  std::string digits;
  for (const char c : text) {
    if (c == ' ' || c == ':') continue;
    if (!std::isxdigit(static_cast<unsigned char>(c))) return false;
    digits += c;
  }
  if (digits.size() % 2 != 0 || digits.size() / 2 > kEventData) return false;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(std::strtoul(digits.substr(i, 2).c_str(), nullptr, 16)));
  return true;
}

bool share(const std::string& text, double& out) {
  if (text.empty()) return false;
  char* end = nullptr;
  out = std::strtod(text.c_str(), &end);
  return *end == 0 && out >= 0 && out <= 1;
}

// Times of the trigger may begin with '+': from now on.
bool moment(const std::string& text, Time now, Time& out) {
  if (text.empty() || text[0] != '+') return parse_time(text, out);
  if (!parse_time(text.substr(1), out)) return false;
  out += now;
  return true;
}

bool action_of(FaultType kind, const std::string& text, FaultAction& out) {
  for (unsigned i = 0; i < kFaultActions; ++i) {
    const auto& row = traces::kFaultActionInfo[i];
    if (row.kind != kind || text != row.name) continue;
    out = static_cast<FaultAction>(i);
    return true;
  }
  return false;
}

FaultAction first_action(FaultType kind) {
  for (unsigned i = 0; i < kFaultActions; ++i)
    if (traces::kFaultActionInfo[i].kind == kind) return static_cast<FaultAction>(i);
  return FaultAction::kCount;
}

std::string actions_of(FaultType kind) {
  std::string list;
  for (const auto& row : traces::kFaultActionInfo)
    if (row.kind == kind) list += (list.empty() ? "" : ", ") + std::string(row.name);
  return list;
}

std::string names_of(traces::FaultKeys keys) {
  std::string list;
  for (unsigned i = 0; i < kFaultKeys; ++i)
    if ((keys >> i & 1) != 0) list += (list.empty() ? "" : ", ") + std::string(traces::kFaultKeyInfo[i].name);
  return list;
}

std::string errors_of(FaultType kind) {
  std::string list;
  if (kind == FaultType::kPcie) {
    for (const PcieErrorName& e : pcie_errors()) list += (list.empty() ? "" : ", ") + std::string(e.name);
    return list;
  }
#define HCASIM_X(value, name) ", " name
  return std::string(HCASIM_MODULE_ERRORS(HCASIM_X)).substr(2);
#undef HCASIM_X
}

std::string allowed(FaultType kind, FaultKey key) {
  switch (key) {
    case FaultKey::kAction:
      return actions_of(kind);
    case FaultKey::kError:
      return errors_of(kind);
    case FaultKey::kDirection:
      return kind == FaultType::kDma ? "read, write" : "tx, rx";
    case FaultKey::kSyndrome:
      return kind == FaultType::kHealth ? "0 to 255" : "0 to 2^32-1";
    case FaultKey::kAt:
    case FaultKey::kAfter:
    case FaultKey::kUntil:
      return "a time, such as 20us, 1.5ms, 3s, 300 (ns); with '+': from now";
    case FaultKey::kDelay:
    case FaultKey::kDuration:
      return "a time, such as 20us, 1.5ms, 3s, 300 (ns)";
    case FaultKey::kEvery:
      return traces::info(kind).moment == FaultMoment::kAtTime ? "a time, such as 1.5ms" : "1 to 2^32";
    case FaultKey::kOpcode:
      return kind == FaultType::kWire ? "a BTH opcode such as SEND_ONLY, ACK, or a number up to 0xff"
                                      : "a command such as CREATE_CQ, or a number up to 0xffff";
    case FaultKey::kStatus:
      return "a status such as BAD_RES_STATE, LIM_ERR, or a number from 1 to 0xff";
    case FaultKey::kType:
      return "an event such as PORT_CHANGE, CMD, or a number up to 0xff";
    default:
      return traces::info(key).allowed;
  }
}

// The largest (and smallest) number that a key of this type takes.
bool within(FaultType kind, FaultKey key, std::uint64_t v) {
  switch (key) {
    case FaultKey::kNth:
    case FaultKey::kCount:
      return v >= 1 && v <= kMaxCount;
    case FaultKey::kTimes:
      return v <= kMaxCount;
    case FaultKey::kSyndrome:
      return v <= (kind == FaultType::kHealth ? 0xffu : 0xffffffffu);
    case FaultKey::kExtSyndrome:
      return v <= 0xffff;
    case FaultKey::kSubType:
    case FaultKey::kModule:
      return v <= 0xff;
    case FaultKey::kFunction:
      return v < kMaxFunctions;
    case FaultKey::kSensors:
      return v != 0;
    default:
      return true;
  }
}

bool set(FaultSpec& f, FaultKey key, const std::string& text, Time now) {
  FaultSpec::Range& r = f.values[static_cast<unsigned>(key)];
  Time t = 0;
  switch (traces::info(key).type) {
    case FaultValue::kTime: {
      const bool trigger = key == FaultKey::kAt || key == FaultKey::kAfter || key == FaultKey::kUntil;
      if (!(trigger ? moment(text, now, t) : parse_time(text, t))) return false;
      r.low = r.high = static_cast<std::uint64_t>(t);
      return true;
    }
    case FaultValue::kNumber:
      if (!whole(text, r.low) || !within(f.kind, key, r.low)) return false;
      r.high = r.low;
      return true;
    case FaultValue::kSigned: {
      char* end = nullptr;
      errno = 0;
      const long v = std::strtol(text.c_str(), &end, 0);
      if (text.empty() || errno != 0 || *end != 0 || v == 0 || v < -65536 || v > 65536) return false;
      r.low = r.high = static_cast<std::uint64_t>(v);
      return true;
    }
    case FaultValue::kRange:
      return range(text, r);
    case FaultValue::kEvery:
      if (traces::info(f.kind).moment == FaultMoment::kAtTime || f.has(FaultKey::kAt)) {
        if (parse_time(text, t) && t > 0) {
          r.low = r.high = static_cast<std::uint64_t>(t);
          return true;
        }
        return false;
      }
      if (!whole(text, r.low) || r.low == 0 || r.low > kMaxCount) return false;
      r.high = r.low;
      return true;
    case FaultValue::kShare:
      return share(text, f.probability);
    case FaultValue::kFlag:
      if (!choice(text, {{"on", 1}, {"true", 1}, {"1", 1}, {"off", 0}, {"false", 0}, {"0", 0}}, r.low))
        return false;
      r.high = r.low;
      return true;
    case FaultValue::kAction:
      return action_of(f.kind, text, f.action);
    case FaultValue::kOpcode:
      if (!opcode(f.kind, text, r.low)) return false;
      r.high = r.low;
      return true;
    case FaultValue::kStatus:
      if (!status(text, r.low)) return false;
      r.high = r.low;
      return true;
    case FaultValue::kEqeType:
      if (!eqe_type(text, r.low)) return false;
      r.high = r.low;
      return true;
    case FaultValue::kDirection:
      if (!(f.kind == FaultType::kDma ? choice(text, {{"read", kFaultRead}, {"write", kFaultWrite}}, r.low)
                                      : choice(text, {{"tx", kFaultTx}, {"rx", kFaultRx}}, r.low)))
        return false;
      r.high = r.low;
      return true;
    case FaultValue::kOwner:
      if (!choice(text, {{"qp", 1}, {"rq", 2}, {"cq", 3}, {"eq", 4}, {"firmware", 5}}, r.low)) return false;
      r.high = r.low;
      return true;
    case FaultValue::kError:
      if (!error(f.kind, text, r.low)) return false;
      r.high = r.low;
      return true;
    case FaultValue::kSeverity:
      if (!choice(text,
                  {{"correctable", kFaultCorrectable}, {"nonfatal", kFaultNonFatal}, {"fatal", kFaultFatal}},
                  r.low))
        return false;
      r.high = r.low;
      return true;
    case FaultValue::kBytes:
      return hex_bytes(text, f.bytes);
  }
  return false;
}

// What one key alone cannot tell.
std::string contradiction(const FaultSpec& f) {
  using A = FaultAction;
  using K = FaultKey;
  switch (f.action) {
    case A::kStatus:
      if (!f.has(K::kStatus) && !f.has(K::kDelay))
        return "command: what is to happen? give status=, delay= or answer=";
      if (f.has(K::kSyndrome) && !f.has(K::kStatus)) return "syndrome: needs status=";
      break;
    case A::kSlow:
    case A::kMsixDelayed:
    case A::kCqeDelayed:
    case A::kWireDelay:
      if (!f.has(K::kDelay)) return std::string(traces::info(f.action).name) + ": needs delay=";
      break;
    case A::kPoisoned:
      if (f.value(K::kDirection) == kFaultWrite && f.has(K::kDirection))
        return "action=poisoned: of reads alone; a poisoned write is the host's to see (kind pcie)";
      break;
    case A::kPagesRefused:
      if (!f.has(K::kStatus)) return "action=refused: needs status=";
      if (f.timed) return "at: action=refused waits for MANAGE_PAGES; give after=";
      break;
    case A::kPagesLost:
      if (f.timed) return "at: action=lost waits for a request; give after=";
      break;
    case A::kPagesAsk:
      if (!f.timed) return "action=ask: needs at=";
      break;
    case A::kPortErrors:
      if (!f.has(K::kCount)) return "action=errors: needs count=";
      break;
    case A::kSyndrome:
      if (!f.has(K::kSyndrome)) return "health: needs syndrome= (or action=)";
      break;
    case A::kModError:
      if (!f.has(K::kError)) return "module: needs error= (or action=)";
      break;
    case A::kEventSent:
      if (!f.has(K::kType)) return "event: needs type=";
      break;
    case A::kAer: {
      if (!f.has(K::kError)) return "pcie: needs error=";
      const bool correctable = pcie_errors()[f.value(K::kError)].correctable;
      if (f.has(K::kSeverity) && correctable != (f.value(K::kSeverity) == kFaultCorrectable))
        return std::string("severity: ") + pcie_errors()[f.value(K::kError)].name + " is " +
               (correctable ? "correctable" : "nonfatal or fatal");
      break;
    }
    default:
      break;
  }
  if (f.kind == FaultType::kPcie && f.value(K::kFunction) != 0)
    return f.action == A::kAer
               ? "function: errors are told by the physical function alone, 0: virtual ones have no "
                 "registers "
                 "for them; leave it away"
               : "function: the card is pulled as a whole, with all of its functions; leave it away";
  if (f.from >= f.until) return "until: not after the window's begin";
  if (f.timed && f.times != 1 && f.every == 0 && f.kind != FaultType::kQp && f.kind != FaultType::kCq)
    return "times: needs every=";
  return {};
}

}  // namespace

const std::vector<PcieErrorName>& pcie_errors() {
#define HCASIM_X(correctable, bit, name) {correctable, bit, name},
  static const std::vector<PcieErrorName> list{HCASIM_PCIE_ERRORS(HCASIM_X)};
#undef HCASIM_X
  return list;
}

bool FaultSpec::sound() const {
  const auto time = [](std::uint64_t ps) { return ps <= static_cast<std::uint64_t>(kNever) / 2; };
  // Of those at a time it is one.
  if (timed ? !time(every) : every == 0) return false;
  for (const FaultKey k : {FaultKey::kDelay, FaultKey::kDuration})
    if (!time(value(k))) return false;
  return traces::info(action).kind == kind &&
         (kind != FaultType::kPcie || value(FaultKey::kError) < pcie_errors().size());
}

bool parse_time(const std::string& text, Time& out) {
  if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.')) return false;
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  double ps = 0;
  if (unit == "ps")
    ps = 1;
  else if (unit.empty() || unit == "ns")
    ps = 1e3;
  else if (unit == "us")
    ps = 1e6;
  else if (unit == "ms")
    ps = 1e9;
  else if (unit == "s")
    ps = 1e12;
  if (ps == 0 || !(v >= 0) || v * ps > kLongest) return false;
  out = std::llround(v * ps);
  return true;
}

std::string fault_name(FaultType kind, FaultAction action) {
  return std::string(traces::info(kind).name) + "/" + traces::info(action).name;
}

bool parse_fault(const FaultPairs& pairs, Time now, std::uint64_t seed, FaultSpec& out, std::string& err) {
  FaultSpec f;
  f.seed = seed;
  const auto kind =
      std::find_if(pairs.begin(), pairs.end(), [](const auto& p) { return p.first == "fault"; });
  if (kind == pairs.end()) {
    err = "fault: missing; it names the kind";
    return false;
  }
  for (unsigned i = 0; i < kFaultKinds; ++i)
    if (kind->second == traces::kFaultKindInfo[i].name) f.kind = static_cast<FaultType>(i);
  if (f.kind == FaultType::kCount) {
    std::string kinds;
    for (const auto& row : traces::kFaultKindInfo)
      kinds += (kinds.empty() ? "" : ", ") + std::string(row.name);
    err = "fault=" + kind->second + ": there are " + kinds;
    return false;
  }
  f.action = first_action(f.kind);
  const traces::FaultKeys keys = own_keys(f.kind) | trigger_keys(f.kind);
  bool times = false, acted = false;
  // What `every` means hangs on `at`, whichever comes first.
  const bool at = std::any_of(pairs.begin(), pairs.end(), [](const auto& p) { return p.first == "at"; });
  if (at && traces::info(f.kind).moment == FaultMoment::kEither) f.given |= traces::fault_keys(FaultKey::kAt);
  traces::FaultKeys seen = 0;
  for (const auto& [name, text] : pairs) {
    if (name == "fault") continue;
    unsigned i = 0;
    while (i < kFaultKeys && name != traces::kFaultKeyInfo[i].name) ++i;
    if (i == kFaultKeys || (keys >> i & 1) == 0) {
      err = name + ": " + traces::info(f.kind).name + " takes " + names_of(keys);
      return false;
    }
    const auto key = static_cast<FaultKey>(i);
    if ((seen >> i & 1) != 0) {
      err = name + ": given twice";
      return false;
    }
    seen |= traces::FaultKeys{1} << i;
    if (!set(f, key, text, now)) {
      err = name;
      err.append("=").append(text).append(": allowed: ").append(allowed(f.kind, key));
      return false;
    }
    if (traces::info(key).type == FaultValue::kAction) {
      if (acted) {
        err = name + ": action is given already";
        return false;
      }
      acted = true;
    }
    f.given |= traces::FaultKeys{1} << i;
    times = times || key == FaultKey::kTimes;
  }
  const FaultMoment moment = traces::info(f.kind).moment;
  f.timed = moment == FaultMoment::kAtTime || (moment == FaultMoment::kEither && f.has(FaultKey::kAt));
  f.from = std::max(f.time(FaultKey::kAt), f.time(FaultKey::kAfter));
  f.until = f.time(FaultKey::kUntil, kNever);
  f.nth = f.value(FaultKey::kNth, 1);
  f.times = times ? f.value(FaultKey::kTimes) : f.probability < 1 ? 0 : 1;
  f.every = f.value(FaultKey::kEvery, f.timed ? 0 : 1);
  f.seed = f.value(FaultKey::kSeed, seed);
  err = contradiction(f);
  if (!err.empty()) return false;
  out = std::move(f);
  return true;
}

}  // namespace hcasim
