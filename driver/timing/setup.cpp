// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/setup.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace hcasim::timing {

namespace {

template <class T>
using Names = std::vector<std::pair<const char*, T>>;

const Names<Verb> kVerbs{{"write", Verb::kWrite},        {"send", Verb::kSend},        {"read", Verb::kRead},
                         {"fetch_add", Verb::kFetchAdd}, {"cmp_swap", Verb::kCmpSwap}, {"udp", Verb::kUdp}};
const Names<Metric> kMetrics{{"lat", Metric::kLat}, {"bw", Metric::kBw}, {"rate", Metric::kRate}};
const Names<Transport> kTransports{{"rc", Transport::kRc}, {"uc", Transport::kUc}, {"ud", Transport::kUd}};
const Names<Fabric> kFabrics{
    {"loopback", Fabric::kLoopback}, {"cable", Fabric::kCable}, {"switch", Fabric::kSwitch}};
const Names<Stack> kStacks{
    {"kernel", Stack::kKernel}, {"busy_poll", Stack::kBusyPoll}, {"bypass", Stack::kBypass}};
const Names<bool> kLinks{{"eth", true}, {"ib", false}};
const Names<bool> kFunctions{{"physical", false}, {"virtual", true}};
const Names<ESwitchMode> kESwitches{
    {"none", ESwitchMode::kNone}, {"legacy", ESwitchMode::kLegacy}, {"switchdev", ESwitchMode::kSwitchdev}};
const Names<bool> kSwitches{{"on", true}, {"off", false}};

template <class T>
bool pick(const Names<T>& names, const std::string& text, T& out) {
  for (const auto& [name, value] : names) {
    if (text != name) continue;
    out = value;
    return true;
  }
  return false;
}

template <class T>
std::string name_of(const Names<T>& names, T value) {
  for (const auto& [name, v] : names) {
    if (v == value) return name;
  }
  return {};
}

template <class T>
bool whole(const std::string& text, long long low, long long high, T& out) {
  char* end = nullptr;
  errno = 0;
  long long v = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || errno != 0) return false;
  long long unit = 1;
  if (*end == 'K' || *end == 'k') unit = 1 << 10, ++end;
  if (*end == 'M') unit <<= 20, ++end;
  // Compared first: the product of a number out of range may be one within it.
  if (*end != 0 || v < std::min(low, 0LL) || v > high / unit) return false;
  v *= unit;
  if (v < low) return false;
  out = static_cast<T>(v);
  return true;
}

bool set_pattern(Setup& s, const std::string& text) {
  const std::size_t at = text.rfind('_');
  return at != std::string::npos && pick(kVerbs, text.substr(0, at), s.verb) &&
         pick(kMetrics, text.substr(at + 1), s.metric);
}

struct Row {
  SetupKey key;
  bool (*set)(Setup&, const std::string&);
  std::string (*get)(const Setup&);
};

template <auto Member, long long Low, long long High>
Row number(const char* name, const char* allowed, const char* help) {
  return {{name, allowed, help},
          [](Setup& s, const std::string& v) { return whole(v, Low, High, s.*Member); },
          [](const Setup& s) { return std::to_string(s.*Member); }};
}

constexpr long long k1M = 1 << 20;

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {{"profile", "a name or the path of a .toml file", "timing profile of the HCAs"},
       [](Setup& s, const std::string& v) {
         s.profile = v;
         return !v.empty() && v.find(',') == std::string::npos;
       },
       [](const Setup& s) { return s.profile; }},
      {{"pattern", "{write,send,read,fetch_add,cmp_swap,udp}_{lat,bw,rate}",
        "what is measured: latency, bandwidth, messages a second"},
       set_pattern,
       [](const Setup& s) { return s.pattern(); }},
      {{"link", "eth, ib", "link type"},
       [](Setup& s, const std::string& v) { return pick(kLinks, v, s.ethernet); },
       [](const Setup& s) { return name_of(kLinks, s.ethernet); }},
      {{"fabric", "loopback, cable, switch", "both ends on one HCA, on two with a cable, on a switch"},
       [](Setup& s, const std::string& v) { return pick(kFabrics, v, s.fabric); },
       [](const Setup& s) { return name_of(kFabrics, s.fabric); }},
      {{"function", "physical, virtual", "which functions of the HCAs the ends are"},
       [](Setup& s, const std::string& v) { return pick(kFunctions, v, s.virtuals); },
       [](const Setup& s) { return name_of(kFunctions, s.virtuals); }},
      {{"eswitch", "none, legacy, switchdev", "which tables the HCAs' E-Switches have (none)"},
       [](Setup& s, const std::string& v) { return pick(kESwitches, v, s.eswitch); },
       [](const Setup& s) { return name_of(kESwitches, s.eswitch); }},
      {{"transport", "rc, uc, ud", "type of the QPs"},
       [](Setup& s, const std::string& v) { return pick(kTransports, v, s.transport); },
       [](const Setup& s) { return name_of(kTransports, s.transport); }},
      number<&Setup::size, 1, 64 * k1M>("size", "1 to 64M bytes", "of a message (8; bandwidth: 64K)"),
      number<&Setup::inline_limit, 0, 900>(
          "inline", "0 to 900 bytes",
          "messages up to this are inline (latency: 220, else 0; udp: with stack=bypass)"),
      {{"blueflame", "on, off", "a WQE posted alone goes with the doorbell (on)"},
       [](Setup& s, const std::string& v) { return pick(kSwitches, v, s.blueflame); },
       [](const Setup& s) { return name_of(kSwitches, s.blueflame); }},
      number<&Setup::qps, 1, 65536>("qps", "1 to 65536", "QPs of each sender"),
      number<&Setup::threads, 1, 256>("threads", "1 to 256", "CPUs of each sender, which share its QPs out"),
      number<&Setup::depth, 1, 8192>("depth", "1 to 8192", "messages of a QP posted and not completed (128)"),
      number<&Setup::postlist, 1, 256>("postlist", "1 to 256", "WQEs a doorbell"),
      number<&Setup::cq_mod, 1, 8192>(
          "cq_mod", "1 to 8192",
          "one CQE for so many messages (latency: 1; depth from 128: 100; else depth / 4)"),
      {{"events", "on, off", "completions are waited for asleep, by interrupts (off)"},
       [](Setup& s, const std::string& v) { return pick(kSwitches, v, s.events); },
       [](const Setup& s) { return name_of(kSwitches, s.events); }},
      number<&Setup::cq_max_count, 0, 65535>("cq_max_count", "0 to 65535",
                                             "one event for so many completions, with cq_period (0: each)"),
      number<&Setup::cq_period, 0, 4095>("cq_period", "0 to 4095 us",
                                         "an event after this at the latest, with cq_max_count (0: none)"),
      {{"stack", "kernel, busy_poll, bypass",
        "udp: what is between program and queues: sockets and interrupts, sockets that poll, nothing "
        "(kernel)"},
       [](Setup& s, const std::string& v) { return pick(kStacks, v, s.stack); },
       [](const Setup& s) { return name_of(kStacks, s.stack); }},
      {{"adaptive", "on, off",
        "udp, stack=kernel: moderation of receive events follows the load, as Linux has it (on); off: "
        "cq_period"},
       [](Setup& s, const std::string& v) { return pick(kSwitches, v, s.adaptive); },
       [](const Setup& s) { return name_of(kSwitches, s.adaptive); }},
      number<&Setup::mrs, 1, 65536>("mrs", "1 to 65536", "memory regions at either end, used in turn"),
      number<&Setup::addresses, 1, k1M>("addresses", "1 to 1M", "of atomics: places used in turn"),
      number<&Setup::span, 0, 1024 * k1M>(
          "span", "0 to 1024M bytes", "memory of a QP that its messages jump about in (0: one message's)"),
      {{"both", "on, off", "both ends send (off)"},
       [](Setup& s, const std::string& v) { return pick(kSwitches, v, s.both); },
       [](const Setup& s) { return name_of(kSwitches, s.both); }},
      number<&Setup::senders, 1, 63>("senders", "1 to 63", "fabric=switch: HCAs that send to one"),
      {{"mtu", "256, 512, 1024, 2048, 4096", "of the path (4096)"},
       [](Setup& s, const std::string& v) {
         return whole(v, 256, 4096, s.mtu) && (s.mtu & (s.mtu - 1)) == 0;
       },
       [](const Setup& s) { return std::to_string(s.mtu); }},
      {{"reads", "1, 2, 4, 8, 16", "outstanding reads and atomics of a QP (16)"},
       [](Setup& s, const std::string& v) {
         return whole(v, 1, 16, s.reads) && (s.reads & (s.reads - 1)) == 0;
       },
       [](const Setup& s) { return std::to_string(s.reads); }},
      number<&Setup::warmup, 0, 100 * k1M>("warmup", "0 to 100M",
                                           "messages before those measured (0: enough)"),
      number<&Setup::iterations, 0, 100 * k1M>("iterations", "0 to 100M", "messages measured (0: enough)"),
  };
  return all;
}

const Row* find(const std::string& key) {
  const auto row =
      std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return key == r.key.name; });
  return row == rows().end() ? nullptr : &*row;
}

void must(bool good, const std::string& message) {
  if (!good) throw SetupError(message);
}

// Bytes that a socket's buffer is charged for a datagram: sk_buff, and a power of two for frame and shared
// info.
std::uint64_t socket_bytes(std::uint32_t size) {
  std::uint64_t data = 512;
  while (data < size + kUdpHeaders + 320) data *= 2;
  return data + 256;
}

void must_be_udp(const Setup& s) {
  must(s.ethernet, "udp: with link=eth");
  must(s.fabric != Fabric::kLoopback, "udp: with fabric=cable or switch");
  must(s.transport == Transport::kRc && !s.events && !s.both,
       "transport, events, both: not of udp, which has stack");
  must(s.size <= 9000 - 28, "udp: size up to 8972, a frame of 9000 bytes");
  must(s.qps <= 64, "udp: qps, which are pairs of queues here, up to 64");
  must(s.depth <= 1024, "udp: depth up to 1024, as queues have");
  must(s.postlist == 1 || s.stack == Stack::kBypass, "postlist: of udp with stack=bypass");
}

unsigned quotient(std::uint64_t a, std::uint64_t b, std::uint64_t low, std::uint64_t high) {
  return static_cast<unsigned>(std::clamp(a / b, low, high));
}

}  // namespace

const std::vector<SetupKey>& setup_keys() {
  static const std::vector<SetupKey> keys = [] {
    std::vector<SetupKey> list;
    for (const Row& r : rows()) list.push_back(r.key);
    return list;
  }();
  return keys;
}

void Setup::set(const std::string& key, const std::string& value) {
  if (key.find('.') != std::string::npos) {
    must(value.find(',') == std::string::npos, key + "=" + value + ": a number is wanted");
    const auto same = [&](const std::string& p) { return p.compare(0, key.size() + 1, key + "=") == 0; };
    parameters.erase(std::remove_if(parameters.begin(), parameters.end(), same), parameters.end());
    parameters.push_back(key + "=" + value);
    return;
  }
  if (const Row* row = find(key)) {
    must(row->set(*this, value), key + "=" + value + ": allowed: " + row->key.allowed);
    return;
  }
  std::string keys;
  for (const Row& r : rows()) keys += std::string(keys.empty() ? "" : ", ") + r.key.name;
  throw SetupError("there is no " + key + "; there are " + keys + ", and SECTION.KEY of the profile");
}

void Setup::set(const std::string& pair) {
  const std::size_t eq = pair.find('=');
  must(eq != std::string::npos && eq != 0, "\"" + pair + "\": expected KEY=VALUE");
  set(pair.substr(0, eq), pair.substr(eq + 1));
}

std::string Setup::get(const std::string& key) const {
  if (const Row* row = find(key)) return row->get(*this);
  for (const std::string& p : parameters) {
    if (p.compare(0, key.size() + 1, key + "=") == 0) return p.substr(key.size() + 1);
  }
  return {};
}

bool Setup::several() const { return qps > 1 || threads > 1 || postlist > 1 || (depth > 1 && !udp()); }

unsigned Setup::socket_datagrams() const {
  return static_cast<unsigned>(std::max<std::uint64_t>(1, kSocketBuffer / socket_bytes(size)));
}

std::string Setup::pattern() const { return name_of(kVerbs, verb) + "_" + name_of(kMetrics, metric); }

Setup Setup::resolved() const {
  Setup s = *this;
  const bool lat = metric == Metric::kLat;
  if (s.size == 0) s.size = metric != Metric::kBw || atomic() ? 8 : udp() ? 1472 : 65536;
  if (udp()) {
    const bool may_be_inline = lat && s.stack == Stack::kBypass;
    must(s.inline_limit <= 0 || may_be_inline, "inline: of udp for latency, with stack=bypass");
    if (!may_be_inline) s.inline_limit = 0;
    s.threads = s.qps;
    if (s.stack != Stack::kBypass) s.cq_mod = 1;
    if (s.stack != Stack::kKernel) s.adaptive = false;
    // As many as the default send buffer of a socket takes (net.core.wmem_default).
    if (s.depth == 0 && s.stack != Stack::kBypass) s.depth = s.socket_datagrams();
  }
  if (s.inline_limit < 0) s.inline_limit = lat ? 220 : 0;
  if (pulls()) s.inline_limit = 0;
  // Not left out in silence: a sweep over them would show one figure as if it were of each.
  must(!lat || !several(),
       "qps, threads, depth, postlist: above 1 for bandwidth and rate only: latency is of one message at a "
       "time");
  must(!udp() || threads == 1 || threads == qps, "threads: of udp there are as many as qps");
  if (lat && !udp()) s.depth = 1;
  if (s.depth == 0) s.depth = std::max(128u, 2 * s.postlist);
  // A full queue must contain a WQE that generates a CQE, or it stays full: up to cq_mod - 1 WQEs await
  // theirs while a post list waits for room.
  const unsigned most = s.depth >= s.postlist ? s.depth + 1 - s.postlist : 1;
  if (s.cq_mod == 0) s.cq_mod = lat ? 1 : std::min(most, s.depth >= 128 ? 100 : std::max(1u, s.depth / 4));
  // Enough messages to be past the start: several rounds of the queues, and not fewer than a handful of
  // large ones.
  const std::uint64_t flying = std::uint64_t{s.depth} * s.qps * s.senders * (s.both ? 2 : 1);
  // Until adaptive moderation has come to rest.
  if (s.warmup == 0 && udp() && s.adaptive) s.warmup = lat ? 1000 : 20000 * s.qps * s.senders;
  if (s.warmup == 0) s.warmup = lat ? 20 : static_cast<unsigned>(std::max<std::uint64_t>(2 * flying, 64));
  // Past the first use of each place and region.
  if (lat) s.warmup += std::max(s.mrs, s.addresses);
  if (s.iterations == 0) {
    const std::uint64_t enough = quotient(std::uint64_t{32} << 20, s.size, 64, 8000);
    s.iterations = lat ? 200 : static_cast<unsigned>(std::max<std::uint64_t>(4 * flying, enough));
  }
  if (udp()) must_be_udp(s);
  must(udp() || stack == Stack::kKernel, "stack: of udp");
  must(!s.atomic() || s.size == 8, "size: atomics are of 8 bytes");
  must(s.transport != Transport::kUd || s.verb == Verb::kSend, "transport=ud: only for send");
  must(s.transport != Transport::kUc || !s.pulls(), "transport=uc: only for write and send");
  must(s.transport != Transport::kUd || s.size <= s.mtu,
       "transport=ud: a message is one packet: size up to mtu");
  must(s.postlist <= s.depth, "postlist: up to depth");
  must(s.cq_mod <= most, "cq_mod: up to depth + 1 - postlist, or a full queue never completes");
  must(s.threads <= s.qps, "threads: up to qps");
  must(s.senders == 1 || s.fabric == Fabric::kSwitch, "senders: with fabric=switch");
  must(s.senders == 1 || !lat, "senders: of bandwidth and rate");
  must(s.senders == 1 || !s.both, "senders: more than one, and both=off");
  must(!s.both || !lat, "both: of bandwidth and rate");
  must(s.eswitch == ESwitchMode::kNone || (s.virtuals && s.ethernet),
       "eswitch: with function=virtual and link=eth");
  must(!s.events || s.verb != Verb::kWrite || !lat, "events: latency of writes is of memory that is polled");
  must((s.cq_max_count == 0 && s.cq_period == 0) || s.events ||
           (udp() && stack == Stack::kKernel && !s.adaptive),
       "cq_max_count, cq_period: with events=on, or of udp with stack=kernel and adaptive=off");
  must((s.cq_max_count > 1) == (s.cq_period > 0), "cq_max_count: above 1, and cq_period with it");
  must(s.span == 0 || s.span >= s.size, "span: at least size");
  return s;
}

}  // namespace hcasim::timing
