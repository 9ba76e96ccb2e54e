// SPDX-License-Identifier: BSD-3-Clause
// A function's firmware: its command interface, and everything that commands work on. CardFirmware makes one
// for each function.
#ifndef HCASIM_FIRMWARE_STUB_FIRMWARE_H
#define HCASIM_FIRMWARE_STUB_FIRMWARE_H

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <systemc>

#include "firmware-stub/caps.h"
#include "firmware-stub/cmdq.h"
#include "firmware-stub/component_update.h"
#include "firmware-stub/firmware_image.h"
#include "firmware-stub/fw_tracer.h"
#include "firmware-stub/gsi.h"
#include "firmware-stub/hca_vport.h"
#include "firmware-stub/health.h"
#include "firmware-stub/icmd.h"
#include "firmware-stub/migration.h"
#include "firmware-stub/objects/objects.h"
#include "firmware-stub/opcodes.h"
#include "firmware-stub/options.h"
#include "firmware-stub/pages.h"
#include "firmware-stub/port_agent.h"
#include "firmware-stub/sub_function.h"
#include "firmware-stub/sync_reset.h"
#include "firmware-stub/thermal.h"
#include "firmware-stub/traps.h"
#include "model/device.h"
#include "model/firmware_port.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim::fw {

// nic_vport_context: what the driver has said of its Ethernet port. Frames are filtered by flow tables; lists
// and promiscuity are kept for whoever asks.
constexpr std::uint32_t kMaxEthMtu = 10000;  // bytes, with the Ethernet header, a VLAN tag and FCS
struct NicVport {
  std::uint32_t min_inline = 0, mtu = 1522;
  std::uint32_t promisc_uc = 0, promisc_mc = 0, promisc_all = 0;
  std::uint32_t admin_state = 2;                    // follows the port
  std::array<std::vector<std::uint64_t>, 3> lists;  // unicast, multicast, VLANs; entries as in the command
  // What its manager may want to hear of (VportWatch).
  enum Change : std::uint32_t { kUc = 1, kMc = 2, kVlan = 4, kPromisc = 8, kMtu = 16 };
  std::uint32_t differences(const NicVport& from) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, min_inline, mtu, promisc_uc, promisc_mc, promisc_all, admin_state, lists);
  }
};

// An entry of the table of MAC addresses that are taken from the wire (SET_L2_TABLE_ENTRY).
struct L2Entry {
  std::uint64_t mac = 0;
  bool vlan_valid = false;
  std::uint16_t vlan = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, mac, vlan_valid, vlan);
  }
};

class Firmware;
class FunctionImages;

// What the functions of a card have in common.
struct CardParts {
  PortAgent& port;
  Traps& traps;
  FirmwareImage& image;
  Thermal& thermal;
  FunctionImages* images;  // null: functions cannot be migrated
};

// The firmwares of a card's functions.
class Siblings {
 public:
  virtual Firmware* find(FunctionId f) = 0;  // null: there is no such function

 protected:
  ~Siblings() = default;
};

class Firmware : public sc_core::sc_module, public FirmwarePort {
 public:
  // card: what functions share.
  Firmware(const sc_core::sc_module_name& name, Device& device, Function& function, const Options& options,
           const CardParts& card, Siblings& siblings);
  ~Firmware() override;

  // FirmwarePort: what the hardware asks.
  std::uint32_t init_seg_read(std::uint32_t offset) override;
  void init_seg_write(std::uint32_t offset, std::uint32_t value) override;
  std::optional<std::uint32_t> icmd_read(std::uint32_t address) override { return icmd_.read(address); }
  bool icmd_write(std::uint32_t address, std::uint32_t value) override { return icmd_.write(address, value); }
  std::vector<std::uint64_t> core() override;
  void function_reset() override;
  void qp_failed(std::uint32_t qpn) override;
  bool take_mad(Time t, const Packet& packet) override;
  void fault(Time t, const FaultSpec& fault, bool begin) override;
  void fatal(const char* what) noexcept override;

  // Fault on request (C API): a health syndrome (0 takes it back), with or without "reset requested".
  void inject_health(std::uint8_t syndrome, bool reset_requested, std::uint16_t ext_syndrome = 0) noexcept;

  // What has happened so far, by name; same order always.
  struct Counter {
    const char* name;
    std::uint64_t value;
  };
  std::vector<Counter> counters();

  // --- For the handlers
  // --------------------------------------------------------------------------------------
  // The engines, which work for all functions; and what is this one's.
  Device& device() { return device_; }
  Function& function() { return function_; }
  const traces::FunctionTracer& tracer() const { return function_.tracer(); }
  // Nothing in flight touches memory any more through an object whose use has been forbidden.
  void quiesce() { device_.quiesce(function_.id()); }
  const Options& options() const { return options_; }
  Caps& caps() { return caps_; }
  PagePool& pages() { return pages_; }
  Objects& objects() { return objects_; }
  PortAgent& port() { return port_; }
  Traps& traps() { return traps_; }
  NicVport& nic_vport() { return nic_vport_; }
  HcaVport& hca_vport() { return hca_vport_; }
  // Of the node that the function is: the card's, or what a virtual one's driver calls it.
  const std::string& node_description() const;
  void set_node_description(std::string text);
  Health& health() { return health_; }
  CmdQueue& cmdq() { return cmdq_; }
  SyncReset& sync_reset() { return sync_reset_; }
  ComponentUpdate& component_update() { return component_update_; }
  FwTracer& fw_tracer() { return fw_tracer_; }
  FirmwareImage& image() { return image_; }
  Thermal& thermal() { return thermal_; }
  // Not null where migration is offered.
  FunctionImages* images() { return images_; }
  MigrationState& migration() { return migration_; }
  // That the port has sent and received.
  std::uint64_t port_bytes() {
    const PortCounters& c = device_.port().counters();
    return c.tx_bytes + c.rx_bytes;
  }
  // To the tracer of the physical function. The values begin with this function's number if the text has it.
  void say(Time t, TraceString what, std::initializer_list<std::uint32_t> values) {
    manager().fw_tracer_.say(t, what, values);
  }
  // A virtual or sub-function of this one, which manages them: by its number in commands (function_id,
  // vport_number; VportNumbers). Null: not one of them, or this one manages none.
  Firmware* managed(std::uint32_t number);
  bool manages() const { return options_.manages(); }
  // Whether that is true of another function of the card.
  bool is_foreign(const std::function<bool(Firmware&)>& of);
  std::map<std::uint32_t, L2Entry>& l2_table() { return l2_table_; }
  // The function's driver has changed that of its Ethernet port (NicVport::Change): who manages it may want
  // to know. watch(): it says of what, and whether the next change makes an event.
  void nic_vport_changed(std::uint32_t what);
  void watch_nic_vport(std::uint32_t what, bool armed);
  // Of a virtual function: its manager lets it start (ENABLE_HCA), or ends it (DISABLE_HCA) with all that it
  // has.
  void set_enabled(bool on);
  // The number of a virtual function that it manages and that is not ended; 0: there is none.
  std::uint32_t first_enabled();
  bool enabled() const { return enabled_; }
  // What went wrong: queues that failed, commands that were refused or could not be read, and those that
  // asked for more than there is.
  struct Errors {
    std::uint64_t queues = 0, commands = 0, over_limit = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, queues, commands, over_limit);
    }
  };
  // Of the function as it is: since its manager has last disabled it.
  Errors own_errors() const {
    const Errors now = errors();
    return {now.queues - settled_errors_.queues, now.commands - settled_errors_.commands,
            now.over_limit - settled_errors_.over_limit};
  }
  // As after power-on: what its manager has settled of it.
  void forget_settled();
  // Of a sub-function
  SubFunction& sub_function() { return sub_function_; }
  void set_vhca_state(prm::VhcaState state);
  void watch_vhca_state(bool armed);
  Syndrome activate(bool on);
  // Entries of its MSI-X table; of a sub-function those of who manages it.
  unsigned vectors() const {
    return options_.vf && !options_.sf ? caps_.get<prm::cmd_hca_cap::dynamic_msix_table_size>()
                                       : options_.msix_vectors;
  }
  // Its port's state was `before`: the policy of it has changed, or what that follows.
  void vport_state_changed(PortState before);
  // The state of the card's port was `before`.
  void port_moved(PortState before) { vport_state_changed(hca_vport_.state(before)); }
  // Commands that wait for the host's answer run again.
  void host_answered();
  // The firmware's processor goes on after a stall.
  void resume();

  State state() const { return state_; }
  void set_state(State s) { state_ = s; }
  std::uint16_t issi = 0;
  std::string driver_version;

  // Everything the driver has made is gone, in hardware and here; nothing DMAs for it any more. Caps stay.
  void drop_objects();
  // As drop_objects(), back to the state before ENABLE_HCA; pages that the host gave are forgotten.
  void to_power_on();

  // An object has come or gone: for the trace, for its owner, and for the UMEMs that it uses.
  void trace_create(ObjType type, std::uint32_t number, std::uint16_t uid = 0);
  void trace_destroy(ObjType type, std::uint32_t number, std::uint16_t uid = 0);
  void trace_general(bool created, std::uint16_t type, std::uint32_t number, std::uint16_t uid);

  // By who takes it back, each everything that the one before does: drop_objects(), to_power_on(),
  // function_reset().
  template <class Archive>
  void list_state(Archive& a) {
    list_objects(a);
    list_session(a);
    list_interface(a);
    a.lasting("qp_errors", qp_errors_);
    bool settled = true;
    if constexpr (Archive::kLoads) {
      settled = a.version() >= 20;
      settled_errors_ = {};  // not those of the card that takes the state
    }
    if (settled) a.lasting("settled_errors", settled_errors_);
    a.lasting("enabled", enabled_);
    a.lasting("sub_function", sub_function_);
    if (Archive::kStores || Archive::kResets || options_.migration) a("migration", migration_);
  }
  // What goes with a function that is held to another card: not what its manager has settled, nor what tools
  // are about.
  template <class Archive>
  void list_image(Archive& a) {
    HCASIM_FIELDS(a, objects_, nic_vport_, pages_, issi, driver_version);
    a("state", state_);
    a("description", hca_vport_.description);
    a("cap_mask", hca_vport_.cap_mask);
    if constexpr (Archive::kLoads)
      if (a.version() < 19) hca_vport_.cap_mask = caps_of_18(hca_vport_.cap_mask);
    std::uint32_t nic_interface = health_.nic_interface();
    bool dma = device_.dma().enabled(function_.id());
    HCASIM_FIELDS(a, nic_interface, dma);
    caps_.list_image(a);
    cmdq_.list_image(a);
    if constexpr (Archive::kLoads) {
      a.check(state_ == State::kOff || state_ == State::kEnabled || state_ == State::kInit,
              "a function has no such state");
      health_.set_nic_interface(nic_interface);
      device_.dma().set_enabled(function_.id(), dma);
    }
  }
  // In front of it: nothing of what the list has is there.
  void clear_for_image();
  // Whether the function may have what it has been given.
  bool image_fits();
  // Behind it.
  void image_loaded();

 private:
  // What the driver has made, and what is under way for it.
  template <class Archive>
  void list_objects(Archive& a) {
    HCASIM_FIELDS(a, objects_, nic_vport_, hca_vport_, gsi_, l2_table_);
  }
  // What the driver has settled from ENABLE_HCA on.
  template <class Archive>
  void list_session(Archive& a) {
    HCASIM_FIELDS(a, pages_, caps_, issi, driver_version, fw_tracer_);
    a("state", state_, State::kOff);
  }
  // The initialization segment and what lies behind it.
  template <class Archive>
  void list_interface(Archive& a) {
    HCASIM_FIELDS(a, cmdq_, icmd_, health_, sync_reset_, component_update_);
    HCASIM_FIELDS_SINCE(19, a, revival_);
  }
  void fast_teardown();
  // The card's processor starts anew, with the image that is stored.
  void restart();
  void end_managed();
  void end_sub_functions();
  void sub_function_left();
  void tell_vhca_state();
  Firmware& manager() { return options_.vf ? *siblings_.find(0) : *this; }
  template <class F>
  void for_each_managed(F f) {
    for (std::uint32_t n = 1; Firmware* vf = managed(n); ++n) f(*vf);
    for (std::uint32_t n = VportNumbers::kFirstSf; Firmware* sf = managed(n); ++n) f(*sf);
  }
  void health_fault(const FaultSpec& fault, bool begin);
  // What the health registers say from now on.
  void trace_health() const noexcept;

  Device& device_;
  Function& function_;
  const Options options_;
  Caps caps_;
  Health health_;
  PagePool pages_;
  Objects objects_;
  PortAgent& port_;
  Gsi gsi_;
  Traps& traps_;
  FirmwareImage& image_;
  Thermal& thermal_;
  FunctionImages* images_;
  Siblings& siblings_;
  NicVport nic_vport_;
  HcaVport hca_vport_;
  std::map<std::uint32_t, L2Entry> l2_table_;
  CmdQueue cmdq_;
  Icmd icmd_;
  SyncReset sync_reset_;
  TimedQueue<std::uint8_t> revival_;  // of a managed function that is dead
  ComponentUpdate component_update_;
  FwTracer fw_tracer_;
  State state_ = State::kOff;
  bool enabled_;  // by the manager: a virtual function by ENABLE_HCA, a sub-function exists; others always
  SubFunction sub_function_;
  MigrationState migration_;
  Errors errors() const;

  std::uint64_t qp_errors_ = 0;  // of the function's QPs, so far
  Errors settled_errors_;        // before its manager has last disabled it
};

}  // namespace hcasim::fw
#endif
