// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "perftest.h"

namespace hcasim::bench {

using timing::Metric;
using timing::Result;
using timing::Setup;
using timing::Transport;
using timing::Verb;

namespace {

const std::string kLine = std::string(87, '-') + "\n";

const char* test_of(Verb verb) {
  switch (verb) {
    case Verb::kWrite:
      return "RDMA_Write";
    case Verb::kSend:
      return "Send";
    case Verb::kRead:
      return "RDMA_Read";
    case Verb::kFetchAdd:
      return "Atomic FETCH_AND_ADD";
    case Verb::kCmpSwap:
      return "Atomic CMP_AND_SWAP";
    case Verb::kUdp:
      break;
  }
  return "";
}

std::string heading(const Setup& s) {
  const bool lat = s.metric == Metric::kLat;
  std::string out = kLine + std::string(20, ' ') + test_of(s.verb);
  if (!lat) out += std::string(s.both ? " Bidirectional" : "") + (s.postlist > 1 ? " Post List" : "");
  out += lat ? " Latency Test\n" : " BW Test\n";
  const char* const type = s.transport == Transport::kRc ? "RC" : s.transport == Transport::kUc ? "UC" : "UD";
  if (s.events) out += " Test with events. Using hcasim_comp0\n";
  out += " Dual-port       : OFF\t\tDevice         : hcasim\n";
  out += fmt::format(" Number of qps   : {}\t\tTransport type : IB\n", s.qps);
  out += fmt::format(" Connection type : {}\t\tUsing SRQ      : OFF\n", type);
  out += fmt::format(" TX depth        : {}\n", s.depth);
  if (s.postlist > 1) out += fmt::format(" Post List       : {}\n", s.postlist);
  if (!lat) out += fmt::format(" CQ Moderation   : {}\n", s.cq_mod);
  out += fmt::format(" Mtu             : {}[B]\n", s.mtu);
  out += fmt::format(" Link type       : {}\n", s.ethernet ? "Ethernet" : "IB");
  if (s.pulls())
    out += fmt::format(" Outstand reads  : {}\n", s.reads);
  else
    out += fmt::format(" Max inline data : {}[B]\n", s.inline_limit);
  out += kLine;
  out += lat ? " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
               "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
             : " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n";
  return out;
}

}  // namespace

std::string perftest_text(const std::vector<Setup>& setups, const std::vector<Result>& results) {
  std::string out, last;
  for (std::size_t i = 0; i < setups.size(); ++i) {
    const Setup s = setups[i].resolved();
    if (s.udp()) throw timing::SetupError("--perftest: perftest sends no datagrams of sockets");
    const Result& r = results[i];
    const std::string head = heading(s);
    if (head != last) out += (last.empty() ? "" : kLine) + head;
    last = head;
    if (s.metric == Metric::kLat)
      out += fmt::format(
          " {:<7} {:<10}    {:<7.2f}        {:<7.2f}      {:<7.2f}  \t       {:<7.2f}     \t{:<7.2f}\t\t"
          "{:<7.2f} \t\t{:<7.2f}\n",
          s.size, s.iterations, r.least / 1000, r.most / 1000, r.median / 1000, r.mean / 1000,
          r.deviation / 1000, r.p99 / 1000, r.p999 / 1000);
    else
      out += fmt::format(" {:<7}    {:<10}       {:<7.2f}            {:<7.2f}\t\t     {:<7.6f}\n", s.size,
                         s.iterations, 0.0, r.bits / 8 / 1048576, r.mops());
  }
  return out + (out.empty() ? "" : kLine);
}

}  // namespace hcasim::bench
