// SPDX-License-Identifier: BSD-3-Clause
// A timing and capability profile: every figure the model's blocks take their time from. Read from a TOML
// file (model/profiles/*.toml), where each parameter stands with its source. Times are ns in the file and
// are rounded to whole cycles of core_clock when loaded.
#ifndef HCASIM_MODEL_PROFILE_H
#define HCASIM_MODEL_PROFILE_H

#include <cstdint>
#include <string>
#include <vector>

#include "model/generation.h"
#include "model/time.h"

namespace hcasim {

struct Profile {
  std::string name = "builtin";
  const Generation* generation = &default_generation();  // never null
  Time cycle = 1000;                                     // ps; [core] clock_mhz

  struct Pcie {
    unsigned generation = 3;
    unsigned lanes = 16;
    double efficiency = 0.9;          // share of the raw link rate left for TLPs
    unsigned max_payload = 256;       // bytes
    unsigned max_read_request = 512;  // bytes
    unsigned completion_boundary = 64;
    unsigned tags = 256;            // outstanding read requests
    unsigned write_buffer = 32768;  // bytes of posted writes that wait for the link before reception stalls
    Time read_latency = from_ns(460);   // round trip of a small read, caches warm
    Time write_latency = from_ns(250);  // posted write until visible in memory
    Time mmio_latency = from_ns(150);   // CPU store until the HCA sees it
    unsigned tlp_write_overhead = 24;   // bytes, framing included
    unsigned tlp_read_overhead = 24;
    unsigned tlp_completion_overhead = 20;
    Time tlp_write = 0, tlp_read = 0;  // from one write or read request to the next, however small
    // Credits that the root complex grants (model/pcie/credits.h): of writes and of read requests; 0: no
    // limit.
    unsigned posted_headers = 0, posted_data = 0, nonposted_headers = 0;
    Time credit = from_ns(200);  // from a TLP's end on the link until its credits are back
    double ps_per_byte() const;  // either direction, from generation, lanes, efficiency
  } pcie;

  // The host's memory behind PCIe, on top of the latencies above (model/pcie/host_memory.h).
  struct Memory {
    unsigned iotlb = 0;  // translations of 4 KiB that the IOMMU keeps; 0: there is no IOMMU
    unsigned iotlb_ways = 8;
    unsigned iotlb_walks = 6;        // walks of its page tables at a time
    Time iotlb_walk = from_ns(310);  // one of them
    unsigned atc = 0;                // translations that the HCA itself keeps (ATS); 0: it asks for none
    unsigned atc_ways = 8;
    unsigned llc_kib = 0;        // the processors' last cache; 0: all payload lies in it
    unsigned llc_io_kib = 2048;  // what writes of devices may fill of it
    Time dram = from_ns(50);     // how much longer a read of payload takes that is not in it
    Time remote = 0;             // how much longer each read and write takes: memory of the other socket
  } memory;

  struct Engine {
    static constexpr unsigned kMostPages = 16, kMostMessages = 8;
    static constexpr std::uint32_t kPage = 4096;  // bytes, of what is gathered
    Time doorbell = from_ns(10);                  // UAR decode
    Time schedule = from_ns(8);                   // one QP picked
    Time wqe_parse = from_ns(10);                 // per WQE
    Time translate = from_ns(4);                  // per translation, MTT hit
    // Units that work side by side, each on one QP at a time: how long one is busy with a WQE and its first
    // packet, or with a message's first packet, and with each packet more. Latency is not in these.
    unsigned tx_units = 8, rx_units = 8;
    Time tx_wqe = from_ns(40), tx_more = from_ns(16);
    Time tx_response = from_ns(80);  // with the first packet of a read's or an atomic's response
    Time tx_response_more = 0;       // with each packet more of a read's; 0: as tx_more
    Time rx_message = from_ns(32), rx_more = from_ns(16);
    // What all units share.
    Time tx_packet = from_ns(6);      // transmit pipeline occupancy per packet
    Time tx_pipeline = from_ns(100);  // transmit pipeline latency
    Time rx_packet = from_ns(6);      // receive pipeline occupancy per packet
    Time rx_pipeline = from_ns(100);  // receive pipeline latency
    Time gather = from_ns(80);        // setting up the gather of a payload that is not inline
    Time gather_page = from_ns(0);    // one engine's reading of 4 KiB of it; 0: as fast as the link
    unsigned gather_pages = 8;        // of a message, that are read at a time: kMostPages at most
    unsigned gather_messages = 0;  // of a QP, that are read at a time: kMostMessages at most; 0: any number
    unsigned stream_bytes = 0;     // of a packet that have to be there before it goes on; 0: all
    Time ack = from_ns(8);         // building or taking an ACK
    Time cqe = from_ns(6);         // completion unit occupancy per CQE
    Time eqe = from_ns(10);
    Time atomic = from_ns(7);         // the ALU, on top of the memory read
    unsigned atomic_slots = 512;      // locks; of 8 bytes each, chosen by the low bits of the address
    Time umr = from_ns(60);           // UMR execution, per WQE
    Time crypto = from_ns(100);       // encryption: latency of a frame behind its last byte
    double crypto_gbps = 200;         // ... and of all frames together, either direction
    unsigned wqe_fetch_bytes = 512;   // one fetch reads at most this much of the SQ
    unsigned rwqe_prefetch = 8;       // receive WQEs read at a time
    unsigned burst_packets = 16;      // a QP's turn in the scheduler
    unsigned dc_contexts = 4096;      // DC initiators that all DC targets together can serve at a time
    unsigned inflight_packets = 256;  // unacknowledged packets of a QP
    unsigned ack_every = 32;          // AckReq at least every so many packets of a message
    Time ack_coalesce = from_ns(40);  // ACKs of a QP due within this are one
    Time batch_window = from_ns(0);   // neighbouring work handled in one activation
  } engine;
  double gather_ps_per_byte() const;  // at which one page of a payload comes at best

  struct Cache {
    unsigned qpc = 4096, cqc = 4096, mkey = 4096, mtt = 65536;  // entries
    unsigned ways = 8;
    unsigned outstanding = 16;  // reads of what misses that are under way at a time, of all caches together
    unsigned qpc_bytes = 256, cqc_bytes = 64, mkey_bytes = 64;  // read for one entry; MTT: 64, eight entries
    // READs and atomics under way, asked for or to be answered, that are on the chip (0: all that there are);
    // how many of those that are not can be read at a time, and the bytes of each.
    unsigned reads = 0, reads_outstanding = 16, reads_bytes = 32;
    unsigned ste = 4096;  // steering table entries of the E-Switch, 64 bytes each
  } cache;

  // The E-Switch (model/steer/lookup_time.h)
  struct Steering {
    Time look_up = from_ns(5);        // one entry, on the chip
    Time look_up_every = from_ns(1);  // from one look-up to the next, whichever frames they are for
    Time rewrite = from_ns(5);        // a list of header fields
    Time reformat = from_ns(10);      // a header or tag put on or taken off
  } steering;

  struct Port {
    double rate_gbps = 100.0;  // data rate after encoding
    // InfiniBand: what flow control and skip ordered sets take of the rate, in per cent; Ethernet's link has
    // its whole rate for frames.
    double infiniband_overhead_percent = 0;
    Time loopback = from_ns(60);  // port out to port in, cable to itself
    Time wire_latency = from_ns(150);
    unsigned ib_link_width = 0x4;     // PTYS encoding: 1 = 1X, 2 = 2X, 4 = 4X, 8 = 8X
    unsigned ib_link_speed = 0x20;    // PTYS encoding: bit 5 = EDR
    unsigned max_mtu = 4096;          // bytes
    unsigned tx_backlog_packets = 8;  // packets queued before the scheduler waits for the port
    // Backlog of the receive side, as time to work it off, that makes the port send pause frames, if they are
    // on, and to which it must fall before the other side may go on.
    Time rx_xoff = from_ns(10000), rx_xon = from_ns(5000);
    // InfiniBand: bytes of each lane's receive buffer, for which the far end gets credits; 0: without flow
    // control (model/port/lane_credits.h).
    unsigned lane_buffer = 0;
    // What the least time between CNPs (min_time_between_cnps) is of, as mlxconfig's ROCE_CC_CNP_MODERATION
    // numbers it: 1 the port, 2 each flow.
    enum : unsigned { kCnpsOfPort = 1, kCnpsOfFlow = 2 };
    unsigned cnp_moderation = kCnpsOfPort;

    // Gb/s for packets on a link whose rate is gbps.
    double packets_gbps(double gbps, bool infiniband) const {
      return infiniband ? gbps * (100 - infiniband_overhead_percent) / 100 : gbps;
    }
  } port;

  struct Firmware {
    Time command = from_ns(2000);         // a plain command
    Time command_mailbox = from_ns(500);  // per mailbox block moved
    Time object = from_ns(3000);          // create, modify, destroy of an object
    unsigned boot_pages = 64;             // 4 KiB pages asked for at boot ...
    unsigned init_pages = 256;            // ... and at INIT_HCA
  } firmware;

  // The machine around the card: what a measurement charges the CPU that drives it. The model itself takes no
  // time from here.
  struct Host {
    Time post = from_ns(30);         // building one send WQE
    Time doorbell = from_ns(100);    // after the doorbell or BlueFlame store: until write-combining memory is
                                     // flushed and the CPU goes on
    Time post_recv = from_ns(15);    // building one receive WQE, doorbell record included
    Time cqe = from_ns(25);          // taking one CQE
    Time poll = from_ns(10);         // looking at memory or at a CQ in vain: the step of a polling loop
    Time interrupt = from_ns(3000);  // an MSI-X message until the thread that waits for it goes on
    Time softirq = from_ns(1000);    // of that: until the kernel's handlers look at the queue
    Time syscall = from_ns(150);     // into the kernel and back
    Time frame_tx = from_ns(500);    // a datagram from the system call to the WQE, and freeing it
    Time frame_rx = from_ns(210);    // a CQE to an IP packet
    Time socket_rx = from_ns(300);   // an IP packet to a socket's queue
    double copy_gbps = 86;           // between user's and kernel's memory
  } host;

  // The file: `name`, `generation` (a key of model/generation.h; default: default_generation()), sections.
  // Everything in the file that the struct does not name is an error: `err` gets "file:line: key: what is
  // allowed". Keys are the members' names, those of times with the suffix _ns; what a file does not name
  // keeps the default above. path may be a bare name, looked for as NAME.toml in the profile folders given.
  // overrides: "SECTION.KEY=VALUE", taken after the file, in order, under the same rules.
  static bool load(const std::string& path, const std::vector<std::string>& folders, Profile& out,
                   std::string& err, const std::vector<std::string>& overrides = {});

  // The parameters by name, "SECTION.KEY", in the order of the file; value: in the file's unit.
  static const std::vector<std::string>& names();
  double value(std::size_t index) const;
};

}  // namespace hcasim
#endif
