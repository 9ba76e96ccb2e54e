// SPDX-License-Identifier: BSD-3-Clause
// The driver's view of one HCA: the probe and removal sequence of mlx5_core, pages, event queues, UAR pages.
#ifndef HCASIM_DRIVER_BARE_DEVICE_H
#define HCASIM_DRIVER_BARE_DEVICE_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/bare/command.h"
#include "driver/bare/machine.h"

namespace hcasim::bare {

class Cq;
class Device;

// A doorbell record, 64 bytes of coherent memory, zeroed.
struct Dbr {
  std::uint8_t* data = nullptr;
  std::uint64_t bus = 0;
  std::uint32_t word(unsigned i) const { return prm::load32(data + 4 * i); }
  void set(unsigned i, std::uint32_t value) const { prm::store32(data + 4 * i, value); }
};

// Layout of a queue's buffer in memory.
struct RingLayout {
  bool scattered = false;    // no two pages are adjacent on the bus; log_page 12 only
  unsigned log_page = 12;    // bytes, log2
  unsigned page_offset = 0;  // start in the first page, units of page size / 64
};

// A queue buffer with that layout.
class Ring {
 public:
  Ring() = default;
  Ring(HostMemory& memory, std::size_t bytes, const RingLayout& layout);
  std::uint8_t* data() const { return buffer_.data() + offset_; }
  std::vector<std::uint64_t> pages() const { return buffer_.page_list(layout_.log_page); }
  std::uint64_t bus(std::size_t off) const { return buffer_.bus(offset_ + off); }
  unsigned log_page_size() const { return layout_.log_page - 12; }  // in the unit of contexts
  unsigned page_offset() const { return layout_.page_offset; }

 private:
  Buffer buffer_;
  RingLayout layout_;
  std::size_t offset_ = 0;
};

struct AsyncEvent {
  prm::EqeType type{};
  std::uint8_t sub_type = 0;
  std::uint32_t number = 0;  // QPN, SRQN, CQN, port, vport, function
  std::uint8_t detail = 0;   // CQ error: syndrome; QP events: kind of queue
};

class EventQueue {
 public:
  using Handler = std::function<void(const prm::Eqe&)>;
  // mask: bit t % 64 of mask[t / 64] subscribes to event type t. Throws BareError when the device refuses.
  EventQueue(Device& device, unsigned log_size, unsigned vector, const std::array<std::uint64_t, 4>& mask,
             Handler handler);
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Consumes all EQEs, updates the consumer index, and re-arms unless switched off. Returns how many.
  unsigned poll(bool arm_again = true);
  void arm();
  void update_ci();
  unsigned eqn() const { return eqn_; }
  const Ring& ring() const { return ring_; }
  std::uint32_t consumer() const { return ci_; }
  CommandResult destroy();
  // Whether interrupts call poll().
  void set_automatic(bool on) { automatic_ = on; }
  void on_interrupt() {
    if (automatic_) poll();
  }

 private:
  Device& device_;
  Ring ring_;
  unsigned log_size_, eqn_ = 0;
  std::uint32_t ci_ = 0;
  std::uint64_t epoch_;
  bool automatic_ = true, live_ = false, closing_ = false;
  Handler handler_;
};

using Mac = std::array<std::uint8_t, 6>;
using Gid = std::array<std::uint8_t, 16>;

// An entry of the RoCE address table.
struct RoceEntry {
  Gid gid{};
  Mac mac{};
  bool ipv4 = false;
  std::uint8_t version = 2;  // 0: RoCE v1, 2: v2
  bool vlan_valid = false;
  std::uint16_t vlan_id = 0;
};
// The entries that probe() writes: addresses derived from the MAC.
enum : unsigned { kRoceV2Ipv4 = 0, kRoceV2Ipv6 = 1, kRoceV1 = 2, kRoceV2Vlan = 3, kRoceEntries = 4 };
constexpr std::uint16_t kTestVlan = 77;

struct DeviceOptions {
  bool event_commands = true;         // once the command EQ exists; false: always polled
  unsigned comp_eqs = 2;              // completion vectors; the other EQs use MSI-X 0
  unsigned log_comp_eq = 11;          // entries of the EQ of each of them, log2
  bool checksums = false;             // signatures of the command interface: off, as in the kernel
  bool wait_active = true;            // probe() returns with the port ACTIVE
  unsigned sgid_index = kRoceV2Ipv4;  // Ethernet: default source address of QPs and WQEs
  bool atomic_host_endian = true;     // results of 8-byte atomics in host order, as in the kernel
  bool vport_events = true;           // a manager takes NIC_VPORT_CHANGE
  bool port_select_bypass = false;  // LAG: queues with an affinity leave by that port, whatever tables select
};

class Device {
 public:
  explicit Device(Function& function) : Device(function, DeviceOptions{}) {}
  Device(Function& function, const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The driver's bring-up sequence; throws BareError at the first step that fails.
  void probe();
  // The removal sequence; throws if the device refuses or keeps pages.
  void teardown();
  bool up() const { return up_; }
  // Function level reset that the driver does not expect: the device loses everything. Objects that were
  // created before only free their memory afterwards.
  void function_reset();
  void card_reset();  // likewise, a conventional one

  Function& function() { return function_; }
  Machine& machine() { return function_.machine(); }
  HostMemory& memory() { return function_.machine().memory(); }
  CommandQueue& cmd() { return cmd_; }
  CommandResult exec(const Mailbox& in, std::size_t out_len = 16) {
    if (uid_ == 0) return cmd_.exec(in, out_len);
    Mailbox marked = in;
    prm::store32(marked.data(), std::uint32_t{in.opcode()} << 16 | uid_);
    return cmd_.exec(marked, out_len);
  }
  // From now on commands carry this user context's uid (0: the driver itself).
  void act_for(std::uint16_t uid) { uid_ = uid; }
  std::uint16_t acting_uid() const { return uid_; }

  // General capabilities in force (QUERY_HCA_CAP current, after SET_HCA_CAP).
  template <class F>
  std::uint64_t cap() const {
    return prm::get<F>(caps_.data());
  }
  std::uint16_t lid() const { return lid_; }
  std::uint32_t uar() const { return uar_; }
  std::uint64_t uar_offset() const { return std::uint64_t{uar_} * prm::uar::kPageBytes; }
  unsigned sq_doorbell_stride() const { return 1u << cap<prm::cmd_hca_cap::log_bf_reg_size>(); }

  Dbr allocate_dbr();
  void free_dbr(const Dbr& d);

  EventQueue& comp_eq(unsigned i) { return *comp_.at(i); }
  EventQueue& async_eq() { return *async_; }
  const std::vector<AsyncEvent>& async_events() const { return async_events_; }
  void clear_async_events() { async_events_.clear(); }
  // Number of events of a type since clear_async_events().
  unsigned count_async(prm::EqeType type, std::uint32_t number = ~0u) const;
  std::size_t pages_given() const { return pages_.size(); }
  // Whether page request events are answered with pages, or with MANAGE_PAGES CANT_GIVE.
  void set_pages_available(bool on) { pages_available_ = on; }
  unsigned page_requests() const { return page_requests_; }

  // Completion events are dispatched to their CQ.
  void attach(std::uint32_t cqn, Cq* cq) { cqs_[cqn] = cq; }
  void detach(std::uint32_t cqn) { cqs_.erase(cqn); }

  // Incremented by each reset: objects of an older epoch do not exist in the device any more.
  std::uint64_t epoch() const { return epoch_; }
  bool lives(std::uint64_t epoch) const { return up_ && epoch == epoch_; }
  // Failed commands of destructors, as text.
  const std::vector<std::string>& failed_destroys() const { return failed_destroys_; }
  void note_destroy(const CommandResult& r) {
    if (!r.ok()) failed_destroys_.push_back(r.text());
  }
  void clear_failed_destroys() { failed_destroys_.clear(); }

  // Single steps, for tests of the sequence itself.
  CommandResult enable_hca();
  CommandResult disable_hca();
  CommandResult init_hca();
  CommandResult teardown_hca(unsigned profile = 0);
  std::int32_t query_pages(unsigned op_mod);
  void give_pages(std::int32_t count);
  // Reclaims up to `count` pages; returns how many the device returned.
  unsigned take_pages(unsigned count);
  CommandResult query_caps(unsigned type, bool current);
  CommandResult set_atomic_endianness(bool host);
  CommandResult access_register(std::uint16_t id, bool write, const std::vector<std::uint8_t>& data);
  CommandResult query_vport();
  bool ethernet() const { return cap<prm::cmd_hca_cap::port_type>() == 1; }
  std::uint8_t port_state();  // 4 = ACTIVE; Ethernet: up
  // Ethernet: administrative state of the port, and its MTU in bytes with header and FCS.
  CommandResult set_port_up(bool up);
  CommandResult set_port_mtu(unsigned bytes);

  // RoCE (roce.cpp)
  const Mac& mac() const { return mac_; }
  const RoceEntry& roce_entry(unsigned index) const { return roce_.at(index); }
  unsigned sgid_index() const { return options_.sgid_index; }
  CommandResult set_roce_address(unsigned index, const RoceEntry& entry);  // no GID: removes the entry
  CommandResult enable_roce(bool on);
  std::vector<std::uint8_t> gid(unsigned index);

 private:
  friend class EventQueue;
  void create_eqs();
  void start_roce();
  void forget();
  void on_async(const prm::Eqe& e);
  void on_page_request(std::int32_t count);

  Function& function_;
  DeviceOptions options_;
  std::uint16_t uid_ = 0;
  CommandQueue cmd_;
  bool up_ = false;
  std::uint64_t epoch_ = 1;
  std::vector<std::uint8_t> caps_;
  std::uint32_t uar_ = 0;
  std::uint16_t lid_ = 0;
  Mac mac_{};
  std::vector<RoceEntry> roce_;
  bool pages_available_ = true;
  unsigned page_requests_ = 0;
  std::map<std::uint64_t, Buffer> pages_;  // owned by the firmware, by bus address
  std::vector<Buffer> dbr_pages_;
  std::vector<Dbr> dbr_free_;
  std::unique_ptr<EventQueue> cmd_eq_, async_, pages_eq_;
  std::vector<std::unique_ptr<EventQueue>> comp_;
  std::vector<AsyncEvent> async_events_;
  std::map<std::uint32_t, Cq*> cqs_;
  std::vector<std::string> failed_destroys_;
};

}  // namespace hcasim::bare
#endif
