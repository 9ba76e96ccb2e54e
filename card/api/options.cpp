// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/options.h"

#include "card/api/hca_api.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace hcasim::api {

namespace {

bool to_bool(const std::string& text, bool& out) {
  if (text == "on" || text == "1" || text == "true" || text == "yes") {
    out = true;
  } else if (text == "off" || text == "0" || text == "false" || text == "no") {
    out = false;
  } else {
    return false;
  }
  return true;
}

bool to_number(const std::string& text, std::uint64_t low, std::uint64_t high, std::uint64_t& out,
               int base = 0) {
  if (text.empty() || !std::isxdigit(static_cast<unsigned char>(text[0]))) return false;
  char* end = nullptr;
  errno = 0;
  const std::uint64_t v = std::strtoull(text.c_str(), &end, base);
  if (errno || *end || v < low || v > high) return false;
  out = v;
  return true;
}

bool to_bytes(const std::string& text, double& out) {
  std::uint64_t n = 0;
  if (!to_number(text, 0, 1 << 30, n)) return false;
  out = static_cast<double>(n);
  return true;
}

bool to_share(const std::string& text, double& out) {
  if (text.empty()) return false;
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (*end || !(v >= 0 && v <= 1)) return false;
  out = v;
  return true;
}

// "0x0002c90300abcdef", "0002c903:00abcdef", "00:02:c9:03:00:ab:cd:ef"
bool to_guid(std::string text, std::uint64_t& out) {
  text.erase(std::remove(text.begin(), text.end(), ':'), text.end());
  if (text.rfind("0x", 0) == 0) text.erase(0, 2);
  if (text.size() > 16) return false;
  return to_number(text, 0, UINT64_MAX, out, 16);
}

// "00:02:c9:ab:cd:ef", "0002c9abcdef"
bool to_mac(std::string text, std::uint64_t& out) {
  text.erase(std::remove(text.begin(), text.end(), ':'), text.end());
  if (text != "0" && text.size() != 12) return false;
  return to_number(text, 0, 0xffffffffffffull, out, 16) && (out >> 40 & 1) == 0;
}

bool valid_name(const std::string& text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

constexpr const char* kNames = "1 to 64 letters, digits, '_', '-', '.'";

// A row an option. set: false when the value is not what `allowed` says; of a value that has parts, or is a
// file, `why` then says which of them is wrong.
struct Option {
  const char* key;
  const char* fallback;
  const char* help;
  const char* allowed;
  bool (*set)(Settings&, const std::string&, std::string& why);
};

const std::string kGenerationKeys = generation_keys();

const Option kOptions[] = {
    {"name", "hcaN", "name in messages and traces", kNames,
     [](Settings& s, const std::string& v, std::string&) {
       s.name = v;
       return valid_name(v);
     }},
    {"link", "eth", "link type of the port: Ethernet or InfiniBand", "eth, ib",
     [](Settings& s, const std::string& v, std::string&) {
       s.firmware.link = v == "eth" ? fw::Link::kEthernet : fw::Link::kInfiniBand;
       return v == "eth" || v == "ib";
     }},
    {"profile", "default", "profile (times, generation): a name, or the path of a .toml file",
     "a name or path",
     [](Settings& s, const std::string& v, std::string&) {
       s.profile = v;
       return !v.empty();
     }},
    {"trace", "(none)", "trace file to write; HCAs that name the same file share it", "a path",
     [](Settings& s, const std::string& v, std::string&) {
       s.trace = v;
       return true;
     }},
    {"rules", "report",
     "what the driver has to keep is checked: breaches are reported (report), end the device's service "
     "(strict), or go unseen (off)",
     "report, strict, off",
     [](Settings& s, const std::string& v, std::string&) { return traces::parse_mode(v, &s.rules); }},
    {"rules_told", "1", "how many breaches of each rule are logged; 0: all", "0 to 1000000",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 0, 1000000, n)) return false;
       s.breaches_logged = static_cast<unsigned>(n);
       return true;
     }},
    {"trace_ring", "0",
     "MiB of memory that the trace is kept in: what is oldest goes; the file is written on request and at "
     "the end. 0: the file is written at once",
     "0 to 65536",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 0, 65536, n)) return false;
       s.trace_ring = static_cast<unsigned>(n);
       return true;
     }},
    {"trace_filter", "all",
     "what the trace is to hold: qp=A+B-C, point=A+B, kind=A+B, detail, path; parted by '/'",
     "qp=, point=, kind= and values parted by '+', detail, path, all",
     [](Settings& s, const std::string& v, std::string& why) {
       s.trace_filter = v;
       return traces::RecordFilter().parse(v, &why);
     }},
    {"trace_on", "on", "the trace begins at once, or when hca_set_trace() starts it", "on, off",
     [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.trace_on); }},
    {"capture", "(none)",
     "pcapng file of what leaves and enters the port; HCAs that name the same file share it", "a path",
     [](Settings& s, const std::string& v, std::string&) {
       s.capture = v;
       return true;
     }},
    {"record", "(none)",
     "file that all of the process's HCAs get and answer is recorded in, for hcasim replay; to be given to "
     "the "
     "first of them",
     "a path",
     [](Settings& s, const std::string& v, std::string&) {
       s.record = v;
       return !v.empty();
     }},
    {"snapshot_every", "0",
     "with record=: the state of all HCAs goes into the recording whenever so much time has passed, for "
     "hcasim replay --from; 0: never",
     "0, or a time from 1us on with its unit, such as 500ms or 10s",
     [](Settings& s, const std::string& v, std::string&) {
       if (v == "0") {
         s.snapshot_every = 0;
         return true;
       }
       return !v.empty() && std::isalpha(static_cast<unsigned char>(v.back())) &&
              parse_time(v, s.snapshot_every) && s.snapshot_every >= from_ns(1000);
     }},
    {"faults", "(none)", "scenario of faults to inject, TOML (hcasim faults)", "the path of a scenario",
     [](Settings& s, const std::string& v, std::string& why) {
       s.scenario_text.clear();
       return read_scenario(v, s.scenario_text, why) && parse_scenario(s.scenario_text, v, s.scenario, why);
     }},
    {"keep_link", "on", "Ethernet: the link stays up for the far end when the driver takes the port down",
     "on, off", [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.keep_link); }},
    {"bf", "off", "BlueFlame: WQEs by write-combining bursts", "on, off",
     [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.firmware.bf); }},
    {"ipoib_offloads", "off",
     "InfiniBand: IPoIB's checksums, large sends and queues by the card; with them Linux' IPoIB has no "
     "connected mode",
     "on, off", [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.firmware.ipoib); }},
    {"sm", "on", "built-in subnet manager: the port becomes ACTIVE with a LID", "on, off",
     [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.firmware.sm); }},
    {"lid", "(free)", "LID that the built-in subnet manager assigns: 1, or after the peer's", "1 to 0xbfff",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 1, 0xbfff, n)) return false;
       s.firmware.lid = static_cast<std::uint16_t>(n);
       return true;
     }},
    {"cable", "(none)", "the port is joined to that of this HCA of the same machine", kNames,
     [](Settings& s, const std::string& v, std::string&) {
       s.cable = v;
       return valid_name(v);
     }},
    {"switch", "(none)",
     "the port is on the modelled switch of this name, with all HCAs of this process that name it", kNames,
     [](Settings& s, const std::string& v, std::string&) {
       s.switch_name = v;
       return valid_name(v);
     }},
    {"card", "(none)",
     "the port is one of the two of the card of this name, in the order in which they are made", kNames,
     [](Settings& s, const std::string& v, std::string&) {
       s.card = v;
       return valid_name(v);
     }},
    {"wire", "(none)", "the port is joined to that of an HCA in another process, or to the host's network",
     "unix:PATH, tcp:HOST:PORT, shm:NAME, host",
     [](Settings& s, const std::string& v, std::string& why) {
       s.host_wire = v == "host";
       s.wire.reset();
       return s.host_wire || wire::parse_address(v, s.wire.emplace(), why);
     }},
    {"node_guid", "0", "node and port GUID, and the card's; 0: made from the HCA's number",
     "1 to 16 hexadecimal digits",
     [](Settings& s, const std::string& v, std::string&) { return to_guid(v, s.firmware.node_guid); }},
    {"mac", "0", "MAC address of the Ethernet link; 0: made from node_guid",
     "12 hexadecimal digits, not a group address",
     [](Settings& s, const std::string& v, std::string&) { return to_mac(v, s.firmware.mac); }},
    {"generation", "(profile)", "what the card says it is, and what it offers at most",
     kGenerationKeys.c_str(),
     [](Settings& s, const std::string& v, std::string&) {
       s.generation = find_generation(v);
       return s.generation != nullptr;
     }},
    {"device_id", "(generation)", "PCI device ID that PCI header and firmware report", "1 to 0xffff",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 1, 0xffff, n)) return false;
       s.firmware.device_id = static_cast<std::uint16_t>(n);
       return true;
     }},
    {"vfs", "0", "virtual functions that the card has (SR-IOV)", "0 to 127",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 0, HCA_MAX_VFS, n)) return false;
       s.firmware.vfs = static_cast<unsigned>(n);
       return true;
     }},
    {"port_select", "queue",
     "LAG on Ethernet: the port of a packet is that of its queue's affinity, or (hash) flow tables may "
     "select "
     "it; both ports of the card say the same",
     "queue, hash",
     [](Settings& s, const std::string& v, std::string&) {
       s.firmware.port_tables = v == "hash";
       return v == "hash" || v == "queue";
     }},
    {"ats", "off",
     "functions show the PCIe capability ATS (ATS_ENABLED of a card's stored configuration): behind an IOMMU "
     "that knows it, their driver may have them keep translations",
     "on, off", [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.firmware.ats); }},
    {"crypto", "off",
     "the board may encrypt: TLS in line, IPsec, MACsec and, on connectx7, PSP, on Ethernet, of generations "
     "that can (connectx6dx, connectx7)",
     "on, off",
     [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.firmware.crypto); }},
    {"sfs", "0", "sub-functions that the card can have, on Ethernet", "0 to 64",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 0, HCA_MAX_SFS, n)) return false;
       s.firmware.sfs = static_cast<unsigned>(n);
       return true;
     }},
    {"page_requests", "on", "firmware asks the driver for host pages", "on, off",
     [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.firmware.page_requests); }},
    {"command_limit_ms", "0",
     "time limit of commands, as announced to the driver; 0: none, and it takes its own (Linux: 60 s)",
     "0, 100 to 1000000",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 0, 1000000, n) || (n != 0 && n < 100)) return false;
       s.firmware.command_limit_ms = static_cast<std::uint32_t>(n);
       return true;
     }},
    {"batch_window_ns", "(profile)",
     "work this near together is handled in one activation: faster, less exact", "0 to 1000000",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 0, 1000000, n)) return false;
       s.batch_window = from_ns(static_cast<double>(n));
       return true;
     }},
    {"wire_latency_ns", "(profile)", "latency of the cable, for what leaves this port", "1 to 1000000000",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 1, 1000000000, n)) return false;
       s.wire_latency = from_ns(static_cast<double>(n));
       return true;
     }},
    {"coupled", "off",
     "with wire=unix:, tcp:, shm: time is the other end's, exactly; that end must say so too", "on, off",
     [](Settings& s, const std::string& v, std::string&) { return to_bool(v, s.coupled); }},
    {"kernel", "fast",
     "all blocks have their turns from one SystemC process, or (native) each is one of its own: the same "
     "results, slower, for SystemC's tools (docs/systemc.md)",
     "fast, native",
     [](Settings& s, const std::string& v, std::string&) {
       s.native = v == "native";
       return v == "native" || v == "fast";
     }},
    {"dc_contexts", "(profile)", "DC initiators that the DC targets can serve at a time", "1 to 1048576",
     [](Settings& s, const std::string& v, std::string&) {
       std::uint64_t n = 0;
       if (!to_number(v, 1, 1u << 20, n)) return false;
       s.dc_contexts = static_cast<unsigned>(n);
       return true;
     }},
};

// Rows of the port's fault generator, for options and for hca_inject() alike.
struct PortFault {
  const char* key;
  const char* fallback;
  const char* help;
  const char* allowed;
  bool (*set)(PortFaults&, const std::string&);
};

const PortFault kPortFaults[] = {
    {"drop", "0", "share of packets that leave the port and are lost", "0 to 1",
     [](PortFaults& f, const std::string& v) { return to_share(v, f.drop); }},
    {"duplicate", "0", "share of packets that arrive twice", "0 to 1",
     [](PortFaults& f, const std::string& v) { return to_share(v, f.duplicate); }},
    {"reorder", "0", "share of packets held back", "0 to 1",
     [](PortFaults& f, const std::string& v) { return to_share(v, f.reorder); }},
    {"reorder_delay_ns", "5000", "how long they are held back", "0 to 1000000000",
     [](PortFaults& f, const std::string& v) {
       std::uint64_t n = 0;
       if (!to_number(v, 0, 1000000000, n)) return false;
       f.reorder_delay = from_ns(static_cast<double>(n));
       return true;
     }},
    {"corrupt", "0", "share of packets that fail their CRC at the receiver", "0 to 1",
     [](PortFaults& f, const std::string& v) { return to_share(v, f.corrupt); }},
    {"garble", "0", "share of packets whose fields are changed at random, checksums made right", "0 to 1",
     [](PortFaults& f, const std::string& v) { return to_share(v, f.garble); }},
    {"ecn", "0", "share of RoCE v2 packets that are marked as a congested switch would", "0 to 1",
     [](PortFaults& f, const std::string& v) { return to_share(v, f.ecn); }},
    {"ecn_kmin", "0", "bytes waiting before a packet beyond which some are marked", "0 to 2^30",
     [](PortFaults& f, const std::string& v) { return to_bytes(v, f.ecn_kmin); }},
    {"ecn_kmax", "0", "bytes from which on all are marked; 0: marked by no queue", "0 to 2^30",
     [](PortFaults& f, const std::string& v) { return to_bytes(v, f.ecn_kmax); }},
    {"ecn_pmax", "0.01", "share that is marked just below ecn_kmax", "0 to 1",
     [](PortFaults& f, const std::string& v) { return to_share(v, f.ecn_pmax); }},
    {"seed", "1", "start value of the fault generator", "0 to 2^64-1",
     [](PortFaults& f, const std::string& v) { return to_number(v, 0, UINT64_MAX, f.seed); }},
};

struct OtherFault {
  const char* key;
  const char* help;
  const char* allowed;
  bool (*make)(Fault&, const std::string&);
};

bool health(Fault& f, Fault::Kind kind, const std::string& v) {
  std::uint64_t n = 0;
  if (!to_number(v, 0, 0xff, n)) return false;
  f.kind = kind;
  f.number = static_cast<std::uint32_t>(n);
  return true;
}

const OtherFault kOtherFaults[] = {
    {"fw_syndrome", "health syndrome that the firmware shows; 0 takes it back", "0 to 255",
     [](Fault& f, const std::string& v) { return health(f, Fault::kHealth, v); }},
    {"fw_fatal", "the same with \"reset requested\": the driver takes the HCA down and up", "0 to 255",
     [](Fault& f, const std::string& v) { return health(f, Fault::kFatalHealth, v); }},
    {"link", "the cable", "up, down",
     [](Fault& f, const std::string& v) {
       f.kind = Fault::kLink;
       f.number = v == "up";
       return v == "up" || v == "down";
     }},
    {"model_fault", "as if an invariant of the model were broken", "1",
     [](Fault& f, const std::string& v) {
       f.kind = Fault::kModelFault;
       return v == "1";
     }},
};

// Calls one(key, value) for each pair; stops at the first false.
template <class F>
bool for_each_pair(const std::string& text, std::string& err, F one, const char* parted = ",") {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(parted, at), text.size());
    const std::string pair = text.substr(at, end - at);
    at = end + 1;
    if (pair.empty()) continue;
    const std::size_t eq = pair.find('=');
    if (eq == std::string::npos || eq == 0) {
      err = "\"" + pair + "\": expected key=value";
      return false;
    }
    std::string key = pair.substr(0, eq);
    if (key == "dup") key = "duplicate";
    if (!one(key, pair.substr(eq + 1))) return false;
  }
  return true;
}

template <class Row, std::size_t N>
const Row* find(const Row (&rows)[N], const std::string& key) {
  const auto row = std::find_if(rows, rows + N, [&](const Row& r) { return key == r.key; });
  return row == rows + N ? nullptr : row;
}

template <class Row, std::size_t N>
void list_keys(const Row (&rows)[N], std::string& out) {
  for (const Row& r : rows) out += (out.empty() ? "" : ", ") + std::string(r.key);
}

void refuse(const std::string& key, const std::string& value, const char* allowed, std::string& err) {
  err = key + "=" + value + ": allowed: " + allowed;
}

template <class Row>
std::string line(const Row& r, const char* fallback) {
  std::string text(r.key);
  text.resize(std::max<std::size_t>(18, text.size() + 1), ' ');
  text += fallback;
  text.resize(std::max<std::size_t>(30, text.size() + 1), ' ');
  return text + r.help + " (" + r.allowed + ")\n";
}

// Each of them is opened by itself, and would overwrite the other.
bool one_file_twice(const Settings& s, std::string& err) {
  const std::pair<const char*, const std::string*> files[] = {
      {"trace", &s.trace}, {"capture", &s.capture}, {"record", &s.record}};
  for (const auto& a : files) {
    for (const auto& b : files) {
      namespace fs = std::filesystem;
      std::error_code error;
      if (&a >= &b || a.second->empty() || b.second->empty()) continue;
      if (fs::path(*a.second).lexically_normal() != fs::path(*b.second).lexically_normal() &&
          !fs::equivalent(*a.second, *b.second, error))
        continue;
      const fs::file_status there = fs::status(*a.second, error);
      if (fs::exists(there) && !fs::is_regular_file(there)) continue;  // /dev/null
      err = std::string(a.first) + "= and " + b.first + "= both name " + *a.second +
            ": give each a file of its own";
      return true;
    }
  }
  return false;
}

}  // namespace

bool parse_options(const std::string& text, Settings& out, std::string& err) {
  const bool good = for_each_pair(text, err, [&](const std::string& key, const std::string& value) {
    if (const Option* row = find(kOptions, key)) {
      std::string why;
      if (row->set(out, value, why)) return true;
      refuse(key, value, row->allowed, err);
      if (!why.empty()) err += "; " + why;
      return false;
    }
    if (const PortFault* row = find(kPortFaults, key)) {
      if (row->set(out.faults, value)) return true;
      refuse(key, value, row->allowed, err);
      return false;
    }
    if (key.find('.') != std::string::npos) {  // what may stand there the profile knows
      out.parameters.push_back(key + "=" + value);
      return true;
    }
    std::string keys;
    list_keys(kOptions, keys);
    list_keys(kPortFaults, keys);
    keys += ", SECTION.KEY of the profile";
    err = "unknown option " + key + "; there are " + keys;
    return false;
  });
  return good && !one_file_twice(out, err);
}

const char* option_help() {
  static const std::string text = [] {
    std::string all;
    for (const Option& r : kOptions) all += line(r, r.fallback);
    for (const PortFault& r : kPortFaults) all += line(r, r.fallback);
    all += "SECTION.KEY       (profile)   any parameter of the profile, such as pcie.read_latency_ns=500\n";
    return all;
  }();
  return text.c_str();
}

bool parse_faults(const std::string& text, Time now, PortFaults& port, std::vector<FaultSpec>& plan,
                  std::string& err, void (*act)(void*, const Fault&), void* context) {
  if (text == "none") {
    const std::uint64_t seed = port.seed;
    port = PortFaults();
    port.seed = seed;
    act(context, {Fault::kHealth, 0});
    act(context, {Fault::kLink, 1});
    return true;
  }
  // All or nothing: what is wrong is found before anything is done.
  PortFaults wanted = port;
  std::vector<Fault> others;
  std::vector<FaultPairs> planned;
  bool any = false;
  const auto one = [&](const std::string& key, const std::string& value) {
    any = true;
    if (key == "fault") planned.emplace_back();
    if (!planned.empty()) {
      planned.back().emplace_back(key, value);
      return true;
    }
    if (const PortFault* row = find(kPortFaults, key)) {
      if (row->set(wanted, value)) return true;
      refuse(key, value, row->allowed, err);
      return false;
    }
    if (const OtherFault* row = find(kOtherFaults, key)) {
      Fault fault;
      if (row->make(fault, value)) {
        others.push_back(fault);
        return true;
      }
      refuse(key, value, row->allowed, err);
      return false;
    }
    std::string keys;
    keys = "none, fault=KIND";
    list_keys(kPortFaults, keys);
    list_keys(kOtherFaults, keys);
    err = "unknown fault " + key + "; there are " + keys;
    return false;
  };
  if (!for_each_pair(text, err, one, ",;")) return false;
  std::vector<FaultSpec> specs(planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i)
    if (!parse_fault(planned[i], now, wanted.seed + i, specs[i], err)) return false;
  plan = std::move(specs);
  if (!any) {
    err = "expected key=value or none";
    return false;
  }
  port = wanted;
  for (const Fault& fault : others) act(context, fault);
  return true;
}

const char* fault_help() {
  static const std::string text = [] {
    std::string all = "none              ends all of them\n";
    for (const PortFault& r : kPortFaults) all += line(r, r.fallback);
    for (const OtherFault& r : kOtherFaults) all += line(r, "");
    return all + "\nfault=KIND, and its keys: the plan of faults\n" + fault_text();
  }();
  return text.c_str();
}

}  // namespace hcasim::api
