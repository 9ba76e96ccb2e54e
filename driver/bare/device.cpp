// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/device.h"

#include <algorithm>
#include <cstring>

#include "driver/bare/cq.h"
#include "prm/access_registers.h"

namespace hcasim::bare {

namespace {

constexpr unsigned kControlVector = 0;
constexpr std::size_t kDbrBytes = 64;
constexpr std::int32_t kPagesPerCommand = 500;

constexpr std::array<std::uint64_t, 4> mask_of(std::initializer_list<prm::EqeType> types) {
  std::array<std::uint64_t, 4> m{};
  for (const prm::EqeType t : types)
    m[static_cast<unsigned>(t) / 64] |= 1ULL << (static_cast<unsigned>(t) % 64);
  return m;
}

}  // namespace

Device::Device(Function& function, const DeviceOptions& options)
    : function_(function), options_(options), cmd_(function) {}

Device::~Device() {
  if (!up_) return;
  try {
    teardown();
  } catch (const std::exception& e) {
    failed_destroys_.emplace_back(e.what());
    forget();
  }
}

CommandResult Device::enable_hca() { return exec(Mailbox(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes)); }
CommandResult Device::disable_hca() {
  return exec(Mailbox(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes));
}
CommandResult Device::init_hca() { return exec(Mailbox(prm::op::INIT_HCA, prm::init_hca_in::bytes)); }

CommandResult Device::teardown_hca(unsigned profile) {
  Mailbox in(prm::op::TEARDOWN_HCA, prm::teardown_hca_in::bytes);
  in.set<prm::teardown_hca_in::profile>(profile);
  return exec(in);
}

std::int32_t Device::query_pages(unsigned op_mod) {
  const auto r =
      exec(Mailbox(prm::op::QUERY_PAGES, prm::query_pages_in::bytes, static_cast<std::uint16_t>(op_mod)),
           prm::query_pages_out::bytes);
  return static_cast<std::int32_t>(r.must().get<prm::query_pages_out::num_pages>());
}

void Device::give_pages(std::int32_t count) {
  do {  // at least once, even for no pages, as the kernel does
    const std::int32_t n = std::min(count, kPagesPerCommand);
    Mailbox in(prm::op::MANAGE_PAGES,
               prm::manage_pages_in::bytes + static_cast<std::size_t>(std::max(n, 0)) * 8, 1);
    in.set<prm::manage_pages_in::input_num_entries>(static_cast<std::uint32_t>(n));
    std::vector<Buffer> pages;
    for (std::int32_t i = 0; i < n; ++i) {
      pages.push_back(memory().allocate(kPage));
      prm::set<prm::manage_pages_in::pas>(in.data(), static_cast<std::size_t>(i), pages.back().bus());
    }
    exec(in).must();
    for (Buffer& b : pages) {
      const std::uint64_t bus = b.bus();
      pages_[bus] = std::move(b);
    }
    count -= n;
  } while (count > 0);
}

unsigned Device::take_pages(unsigned count) {
  Mailbox in(prm::op::MANAGE_PAGES, prm::manage_pages_in::bytes, 2);
  in.set<prm::manage_pages_in::input_num_entries>(count);
  const auto r = exec(in, prm::manage_pages_out::bytes + count * std::size_t{8});
  r.must();
  const auto n = static_cast<unsigned>(r.get<prm::manage_pages_out::output_num_entries>());
  if (n > count) throw BareError("the device gave back more pages than asked for");
  for (unsigned i = 0; i < n; ++i) {
    const std::uint64_t bus = prm::get<prm::manage_pages_out::pas>(r.out.data(), i);
    if (pages_.erase(bus) != 1) throw BareError("the device gave back a page that it does not have");
  }
  return n;
}

CommandResult Device::query_caps(unsigned type, bool current) {
  return exec(Mailbox(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes,
                      static_cast<std::uint16_t>(type << 1 | (current ? 1 : 0))),
              prm::query_hca_cap_out::bytes);
}

CommandResult Device::set_atomic_endianness(bool host) {
  Mailbox in(prm::op::SET_HCA_CAP, prm::set_hca_cap_in::bytes, 3 << 1);
  prm::set<prm::atomic_caps::atomic_req_8B_endianness_mode>(
      in.data() + prm::set_hca_cap_in::capability::bit_off / 8, host ? 1 : 0);
  return exec(in, prm::set_hca_cap_out::bytes);
}

CommandResult Device::access_register(std::uint16_t id, bool write, const std::vector<std::uint8_t>& data) {
  Mailbox in(prm::op::ACCESS_REG, prm::access_register_in::bytes + data.size(), write ? 0 : 1);
  in.set<prm::access_register_in::register_id>(id);
  std::copy(data.begin(), data.end(), in.begin() + prm::access_register_in::bytes);
  return exec(in, prm::access_register_out::bytes + data.size());
}

CommandResult Device::query_vport() {
  return exec(Mailbox(prm::op::QUERY_HCA_VPORT_CONTEXT, prm::query_hca_vport_context_in::bytes),
              prm::query_hca_vport_context_out::bytes);
}

CommandResult Device::set_port_up(bool up) {
  using R = prm::paos_reg;
  std::vector<std::uint8_t> reg(R::bytes);
  prm::set<R::local_port>(reg.data(), 1);
  prm::set<R::admin_status>(reg.data(), up ? 1 : 2);
  prm::set<R::ase>(reg.data(), 1);
  return access_register(prm::reg::kPaos, true, reg);
}

CommandResult Device::set_port_mtu(unsigned bytes) {
  using R = prm::pmtu_reg;
  std::vector<std::uint8_t> reg(R::bytes);
  prm::set<R::local_port>(reg.data(), 1);
  prm::set<R::admin_mtu>(reg.data(), bytes);
  return access_register(prm::reg::kPmtu, true, reg);
}

std::uint8_t Device::port_state() {
  if (ethernet()) {
    const auto r = exec(Mailbox(prm::op::QUERY_VPORT_STATE, prm::query_vport_state_in::bytes),
                        prm::query_vport_state_out::bytes);
    return r.must().get<prm::query_vport_state_out::state>() == 1 ? 4 : 1;
  }
  using Out = prm::query_hca_vport_context_out;
  const auto r = query_vport().must();
  lid_ = static_cast<std::uint16_t>(r.get<Out::hca_vport_context::lid>());
  return static_cast<std::uint8_t>(r.get<Out::hca_vport_context::vport_state>());
}

std::vector<std::uint8_t> Device::gid(unsigned index) {
  Mailbox in(prm::op::QUERY_HCA_VPORT_GID, prm::query_hca_vport_gid_in::bytes);
  in.set<prm::query_hca_vport_gid_in::gid_index>(index);
  const auto r = exec(in, prm::query_hca_vport_gid_out::bytes + 16);
  r.must();
  return {r.out.begin() + 16, r.out.begin() + 32};
}

void Device::probe() {
  cmd_.start();
  up_ = true;
  enable_hca().must();
  const auto issi = exec(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes);
  issi.must();
  if (!(issi.get<prm::query_issi_out::supported_issi_dw0>() & 2)) throw BareError("ISSI 1 is not supported");
  exec(Mailbox(prm::op::SET_ISSI, prm::set_issi_in::bytes).set<prm::set_issi_in::current_issi>(1)).must();
  give_pages(query_pages(1));
  access_register(prm::reg::kHostEndianness, true, std::vector<std::uint8_t>(16)).must();  // little

  const auto max = query_caps(0, false).must();
  const auto cur = query_caps(0, true);
  cur.must();
  Mailbox set(prm::op::SET_HCA_CAP, prm::set_hca_cap_in::bytes);
  std::uint8_t* cap = set.data() + prm::set_hca_cap_in::capability::bit_off / 8;
  std::memcpy(cap, cur.out.data() + prm::query_hca_cap_out::capability::bit_off / 8,
              prm::set_hca_cap_in::capability::bits / 8);
  using Cap = prm::cmd_hca_cap;
  prm::set<Cap::pkey_table_size>(cap, 0);
  prm::set<Cap::log_max_qp>(cap, std::min<std::uint32_t>(18, prm::get<Cap::log_max_qp>(cap)));
  prm::set<Cap::cmdif_checksum>(cap, options_.checksums ? 3 : 0);
  prm::set<Cap::log_uar_page_sz>(cap, 0);
  if (max.get<prm::cmd_hca_cap_at<prm::query_hca_cap_out::capability::bit_off>::vhca_state>() != 0) {
    prm::set<Cap::vhca_state>(cap, 1);
    prm::set<Cap::event_on_vhca_state_allocated>(cap, 1);
    prm::set<Cap::event_on_vhca_state_active>(cap, 1);
    prm::set<Cap::event_on_vhca_state_in_use>(cap, 1);
    prm::set<Cap::event_on_vhca_state_teardown_request>(cap, 1);
  }
  exec(set).must();
  if (prm::get<Cap::atomic>(cap)) {
    query_caps(3, true).must();
    set_atomic_endianness(options_.atomic_host_endian).must();
  }
  if (options_.port_select_bypass) {
    const auto group = static_cast<unsigned>(prm::k::SET_HCA_CAP_OP_MOD_PORT_SELECTION);
    const auto selection = query_caps(group, true).must();
    Mailbox bypass(prm::op::SET_HCA_CAP, prm::set_hca_cap_in::bytes, static_cast<std::uint16_t>(group << 1));
    std::uint8_t* block = bypass.data() + prm::set_hca_cap_in::capability::bit_off / 8;
    std::memcpy(block, selection.out.data() + prm::query_hca_cap_out::capability::bit_off / 8,
                prm::set_hca_cap_in::capability::bits / 8);
    prm::set<prm::port_selection_cap::port_select_flow_table_bypass>(block, 1);
    exec(bypass).must();
  }
  give_pages(query_pages(2));
  init_hca().must();
  const auto after = query_caps(0, true);
  after.must();
  const std::uint8_t* now = after.out.data() + prm::query_hca_cap_out::capability::bit_off / 8;
  caps_.assign(now, after.out.data() + after.out.size());
  exec(Mailbox(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes), prm::query_adapter_out::bytes).must();

  const auto uar = exec(Mailbox(prm::op::ALLOC_UAR, prm::alloc_uar_in::bytes), prm::alloc_uar_out::bytes);
  uar_ = static_cast<std::uint32_t>(uar.must().get<prm::alloc_uar_out::uar>());
  if (uar_ < 3 || uar_offset() + prm::uar::kPageBytes > HCA_BAR0_SIZE)
    throw BareError("UAR page outside of BAR0");
  create_eqs();
  if (ethernet()) {
    set_port_up(true).must();
    start_roce();
  }
  if (options_.wait_active && port_state() != 4) {
    if (!machine().run_until([&] { return count_async(prm::EqeType::kPortChange) != 0; }, 10'000'000'000) ||
        port_state() != 4)
      throw BareError("the port does not become ACTIVE");
  }
}

void Device::create_eqs() {
  using T = prm::EqeType;
  cmd_eq_ =
      std::make_unique<EventQueue>(*this, 8, kControlVector, mask_of({T::kCmd}), [this](const prm::Eqe& e) {
        if (e.type != static_cast<std::uint8_t>(T::kCmd)) throw BareError("foreign event in the command EQ");
        if (cmd_.events()) cmd_.complete(e.data.cmd.vector);
      });
  function_.on_interrupt(kControlVector, [this] {
    if (cmd_eq_) cmd_eq_->poll();
    if (async_) async_->poll();
    if (pages_eq_) pages_eq_->poll();
  });
  cmd_eq_->arm();
  cmd_.use_events(options_.event_commands);
  auto events = mask_of({T::kPathMig, T::kCommEst, T::kSqDrained, T::kCqError, T::kWqCatas, T::kPathMigFailed,
                         T::kPortChange, T::kWqInvalidReq, T::kWqAccess, T::kSrqCatas, T::kLastWqe,
                         T::kSrqLimit, T::kDctDrained, T::kDctKeyViolation});
  if (options_.vport_events && cap<prm::cmd_hca_cap::eswitch_manager>() != 0)
    events[0] |= std::uint64_t{1} << static_cast<unsigned>(T::kNicVportChange);
  if (cap<prm::cmd_hca_cap::vhca_state>() != 0)
    events[0] |= std::uint64_t{1} << static_cast<unsigned>(T::kVhcaStateChange);
  if ((cap<prm::cmd_hca_cap::general_obj_types>() >> prm::k::GENERAL_OBJECT_TYPES_MACSEC & 1) != 0)
    events[0] |= std::uint64_t{1} << static_cast<unsigned>(T::kObjectChange);
  async_ = std::make_unique<EventQueue>(*this, 13, kControlVector, events,
                                        [this](const prm::Eqe& e) { on_async(e); });
  async_->arm();
  pages_eq_ = std::make_unique<EventQueue>(
      *this, 8, kControlVector, mask_of({T::kPageRequest}), [this](const prm::Eqe& e) {
        on_page_request(static_cast<std::int32_t>(static_cast<std::uint32_t>(e.data.page_req.num_pages)));
      });
  pages_eq_->arm();
  for (unsigned i = 0; i < options_.comp_eqs; ++i) {
    comp_.push_back(std::make_unique<EventQueue>(*this, options_.log_comp_eq, 1 + i, mask_of({}),
                                                 [this](const prm::Eqe& e) {
                                                   if (e.type != static_cast<std::uint8_t>(T::kComp))
                                                     throw BareError("foreign event in a completion EQ");
                                                   const auto it = cqs_.find(e.data.comp.cqn & 0xffffff);
                                                   if (it != cqs_.end()) it->second->on_event();
                                                 }));
    EventQueue* eq = comp_.back().get();
    function_.on_interrupt(1 + i, [eq] { eq->on_interrupt(); });
    eq->arm();
  }
}

void Device::on_async(const prm::Eqe& e) {
  AsyncEvent a;
  a.type = static_cast<prm::EqeType>(e.type);
  a.sub_type = e.sub_type;
  switch (a.type) {
    case prm::EqeType::kCqError:
      a.number = e.data.cq_err.cqn & 0xffffff;
      a.detail = e.data.cq_err.syndrome;
      break;
    case prm::EqeType::kPortChange:
      a.number = e.data.port.port >> 4;
      break;
    case prm::EqeType::kNicVportChange:
      a.number = e.data.nic_vport.vport_num;
      break;
    case prm::EqeType::kObjectChange:
      a.number = e.data.object_change.number;
      break;
    case prm::EqeType::kVhcaStateChange:
      a.number = e.data.vhca_state.function_id;
      break;
    default:
      a.number = e.data.qp_srq.number & 0xffffff;
      a.detail = e.data.qp_srq.type;
  }
  async_events_.push_back(a);
}

unsigned Device::count_async(prm::EqeType type, std::uint32_t number) const {
  return static_cast<unsigned>(std::count_if(
      async_events_.begin(), async_events_.end(),
      [&](const AsyncEvent& a) { return a.type == type && (number == ~0u || a.number == number); }));
}

// Runs in an interrupt handler and must not wait, so the command has a slot of its own.
void Device::on_page_request(std::int32_t count) {
  const int slot = static_cast<int>(cmd_.slots()) - 1;
  ++page_requests_;
  if (count >= 0 && !pages_available_) {
    Mailbox in(prm::op::MANAGE_PAGES, prm::manage_pages_in::bytes, 0);
    cmd_.submit(
        in, 16, [this](const CommandResult& r) { note_destroy(r); }, slot);
    return;
  }
  if (count >= 0) {
    Mailbox in(prm::op::MANAGE_PAGES, prm::manage_pages_in::bytes + static_cast<std::size_t>(count) * 8, 1);
    in.set<prm::manage_pages_in::input_num_entries>(static_cast<std::uint32_t>(count));
    for (std::int32_t i = 0; i < count; ++i) {
      Buffer b = memory().allocate(kPage);
      prm::set<prm::manage_pages_in::pas>(in.data(), static_cast<std::size_t>(i), b.bus());
      const std::uint64_t bus = b.bus();
      pages_[bus] = std::move(b);
    }
    cmd_.submit(
        in, 16, [this](const CommandResult& r) { note_destroy(r); }, slot);
    return;
  }
  const auto n = static_cast<std::uint32_t>(-count);
  Mailbox in(prm::op::MANAGE_PAGES, prm::manage_pages_in::bytes, 2);
  in.set<prm::manage_pages_in::input_num_entries>(n);
  cmd_.submit(
      in, prm::manage_pages_out::bytes + n * std::size_t{8},
      [this](const CommandResult& r) {
        note_destroy(r);
        for (std::size_t i = 0; i < r.get<prm::manage_pages_out::output_num_entries>(); ++i)
          pages_.erase(prm::get<prm::manage_pages_out::pas>(r.out.data(), i));
      },
      slot);
}

void Device::teardown() {
  const auto eq = [](std::unique_ptr<EventQueue>& q) {
    if (q) q->destroy().must();
    q.reset();
  };
  for (auto& q : comp_) eq(q);
  comp_.clear();
  eq(pages_eq_);
  eq(async_);
  cmd_.use_events(false);
  eq(cmd_eq_);
  for (unsigned v = 0; v < HCA_MSIX_VECTORS; ++v) function_.on_interrupt(v, {});
  Mailbox in(prm::op::DEALLOC_UAR, prm::dealloc_uar_in::bytes);
  exec(in.set<prm::dealloc_uar_in::uar>(uar_)).must();
  teardown_hca().must();
  while (!pages_.empty()) {
    if (take_pages(static_cast<unsigned>(std::min<std::size_t>(pages_.size(), kPagesPerCommand))) == 0)
      throw BareError("the device keeps pages after TEARDOWN_HCA");
  }
  disable_hca().must();
  up_ = false;
  ++epoch_;
  cmd_.stop();
  cqs_.clear();
}

void Device::function_reset() {
  function_.reset();
  forget();
}

void Device::card_reset() {
  function_.card_reset();
  forget();
}

void Device::forget() {
  ++epoch_;
  up_ = false;
  cmd_.stop();
  for (unsigned v = 0; v < HCA_MSIX_VECTORS; ++v) function_.on_interrupt(v, {});
  comp_.clear();
  pages_eq_.reset();
  async_.reset();
  cmd_eq_.reset();
  pages_.clear();
  cqs_.clear();
  async_events_.clear();
}

Dbr Device::allocate_dbr() {
  if (dbr_free_.empty()) {
    dbr_pages_.push_back(memory().allocate(kPage));
    for (std::size_t off = kPage; off >= kDbrBytes; off -= kDbrBytes)
      dbr_free_.push_back(
          Dbr{dbr_pages_.back().data() + off - kDbrBytes, dbr_pages_.back().bus(off - kDbrBytes)});
  }
  const Dbr d = dbr_free_.back();
  dbr_free_.pop_back();
  std::memset(d.data, 0, kDbrBytes);
  return d;
}

void Device::free_dbr(const Dbr& d) {
  if (d.data) dbr_free_.push_back(d);
}

}  // namespace hcasim::bare
