// SPDX-License-Identifier: BSD-3-Clause
// Worlds of the port: congestion control; access registers and what the configuration space leads to.
#include "firmware-stub/registers.h"
#include "prm/access_registers.h"
#include "prm/icmd.h"
#include "tests/device/fixture.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

class Congestion : public World {
 public:
  explicit Congestion(Device& d) : pair_(d, options()), joined_(pair_.a, pair_.b, options().attr) {
    fault("ecn=0.5");
  }
  ~Congestion() override {
    fault("ecn=0,ecn_kmin=0,ecn_kmax=0");
    pair_.dev.set_port_up(true);
  }
  void work(Dice& dice) override {
    parameters(dice);
    for (unsigned n = 0; n < 3; ++n) {
      const bool read = dice.chance(20);
      SendWr w = pair_.wr(read ? WqeOp::kRdmaRead : WqeOp::kRdmaWrite, 0,
                          static_cast<std::uint32_t>(1 + dice.below(60'000)));
      post(pair_.a, w, dice, spoiling_ / 2);
    }
    pair_.dev.machine().advance(static_cast<std::int64_t>(1 + dice.below(200)) * 1000);
    query(dice);
    switch (dice.below(8)) {
      case 0:
        fault("ecn=" + std::to_string(dice.below(11) * 0.1));
        break;
      case 1:
        fault("ecn_kmin=1000,ecn_kmax=" + std::to_string(2000 + dice.below(20'000)));
        break;
      case 2:
        pause(dice);
        break;
      default:
        break;
    }
    joined_.revive(dice);
    drain(pair_.acq);
    drain(pair_.bcq);
  }

 private:
  static PairOptions options() {
    PairOptions o;
    o.connect = false;
    o.attr.mtu = 1024;
    return o;
  }
  void fault(const std::string& f) { pair_.dev.function().inject(f); }
  void parameters(Dice& dice) {
    using In = prm::modify_cong_params_in;
    const unsigned protocol = 1 + dice.byte() % 2;
    Mailbox in(prm::op::MODIFY_CONG_PARAMS, In::bytes);
    in.set<In::cong_protocol>(protocol);
    // Fields that are selected, and all of them small.
    in.set<In::field_select::field_select_r_roce_rp::field_select_r_roce_rp>(
        dice.chance(50) ? 1u << dice.below(20) : dice.word() & 0x7ffff);
    constexpr std::size_t kFirst = In::congestion_parameters::bit_off / 8;
    for (std::size_t at = kFirst; at + 4 <= in.size() && at < kFirst + 0x60; at += 4)
      if (dice.chance(40)) prm::store32(in.data() + at, dice.chance(90) ? dice.byte() : dice.edge());
    pair_.dev.exec(in);
    if (!dice.chance(20)) return;
    using Status = prm::modify_cong_status_in;
    Mailbox status(prm::op::MODIFY_CONG_STATUS, Status::bytes);
    status.set<Status::cong_protocol>(protocol).set<Status::priority>(dice.below(8));
    pair_.dev.exec(status.set<Status::enable>(dice.chance(70)));
  }
  void query(Dice& dice) {
    const unsigned protocol = 1 + dice.byte() % 2;
    using Params = prm::query_cong_params_in;
    Mailbox p(prm::op::QUERY_CONG_PARAMS, Params::bytes);
    pair_.dev.exec(p.set<Params::cong_protocol>(protocol), prm::query_cong_params_out::bytes);
    using Status = prm::query_cong_status_in;
    Mailbox s(prm::op::QUERY_CONG_STATUS, Status::bytes);
    pair_.dev.exec(s.set<Status::cong_protocol>(protocol).set<Status::priority>(dice.below(8)),
                   prm::query_cong_status_out::bytes);
    using Counts = prm::query_cong_statistics_in;
    Mailbox c(prm::op::QUERY_CONG_STATISTICS, Counts::bytes);
    pair_.dev.exec(c.set<Counts::clear>(dice.chance(10)), prm::query_cong_statistics_out::bytes);
  }
  void pause(Dice& dice) {
    std::vector<std::uint8_t> r(prm::pfcc_reg::bytes);
    prm::set<prm::pfcc_reg::local_port>(r.data(), 1);
    prm::set<prm::pfcc_reg::pprx>(r.data(), dice.byte() & 1u);
    prm::set<prm::pfcc_reg::pptx>(r.data(), dice.byte() & 1u);
    prm::set<prm::pfcc_reg::pfctx>(r.data(), dice.byte());
    prm::set<prm::pfcc_reg::pfcrx>(r.data(), dice.byte());
    pair_.dev.access_register(prm::reg::kPfcc, true, r);
  }

  Pair pair_;
  Joined joined_;
};

// Those of management tools and of drivers, by the command and by the mailbox that the configuration space
// leads to.
class Registers : public World {
 public:
  explicit Registers(Device& d)
      : pair_(d), buffer_(d.memory().allocate(kBytes)), mr_(d, Mr::of(pair_.pd, buffer_)) {}
  ~Registers() override { pair_.dev.set_port_up(true); }
  void work(Dice& dice) override {
    for (unsigned n = 0; n < 4; ++n) {
      const std::uint16_t id =
          dice.chance(95) ? dice.pick(fw::all_registers()) : static_cast<std::uint16_t>(dice.word());
      good_ += access(id, dice).ok() ? 1 : 0;
      if (dice.chance(20)) by_mailbox(id, dice);
    }
    if (dice.chance(30)) space(dice);
    post(pair_.a, pair_.wr(WqeOp::kRdmaWrite, 0, 4096), dice, spoiling_);
    pair_.dev.machine().advance(5'000);
    drain(pair_.acq);
  }

 private:
  static constexpr std::size_t kBytes = 8192;
  std::vector<std::uint8_t> content(std::uint16_t id, Dice& dice) {
    std::vector<std::uint8_t> data(dice.chance(90) ? 256 : 4 * dice.below(200));
    if (data.size() < 64) data.resize(64);
    for (std::size_t n = dice.below(12); n > 0; --n)
      data[dice.below(dice.chance(80) ? 32 : data.size())] = dice.chance(70) ? dice.byte() & 3 : dice.byte();
    std::uint8_t* p = data.data();
    if (id >= 0x4000 && id < 0x6000 && dice.chance(80))
      prm::set<prm::paos_reg::local_port>(p, 1);  // all alike
    switch (id) {
      case prm::reg::kPaos:
        prm::set<prm::paos_reg::admin_status>(p, 1);
        prm::set<prm::paos_reg::ase>(p, 1);
        break;
      case prm::reg::kPpcnt:
        prm::set<prm::ppcnt_reg::grp>(p, dice.below(0x24));
        prm::set<prm::ppcnt_reg::prio_tc>(p, dice.below(8));
        break;
      case prm::reg::kMcia:
        prm::set<prm::mcia_reg::i2c_device_address>(p, 0x50);
        prm::set<prm::mcia_reg::page_number>(p, dice.byte());
        prm::set<prm::mcia_reg::size>(p, 48);
        break;
      case prm::reg::kResourceDump:
        if (dice.chance(80)) dump(p, dice);
        break;
      case prm::reg::kMtrcCap:
        prm::set<prm::mtrc_cap::trace_owner>(p, dice.byte() & 1u);
        break;
      case prm::reg::kMtrcCtrl:
        prm::set<prm::mtrc_ctrl::trace_status>(p, dice.byte() & 3u);
        break;
      default:
        break;
    }
    return data;
  }
  // Of an object, by its number.
  void dump(std::uint8_t* p, Dice& dice) {
    static constexpr std::array<std::uint16_t, 15> kSegments{0xffff, 0x1000, 0x1001, 0x1002, 0x1003,
                                                             0x1010, 0x1011, 0x1012, 0x1013, 0x1014,
                                                             0x1020, 0x1021, 0x1030, 0x1031, 0x1032};
    using R = prm::resource_dump;
    prm::set<R::segment_type>(p, dice.pick(kSegments));
    prm::set<R::index1>(p, dice.chance(50) ? pair_.a.qpn() : static_cast<std::uint32_t>(dice.below(64)));
    prm::set<R::num_of_obj1>(p, dice.byte() & 3u);
    prm::set<R::mkey>(p, mr_.key());
    prm::set<R::size>(p, kBytes);
    prm::set<R::address>(p, mr_.start());
    prm::set<R::inline_dump>(p, dice.byte() & 1u);
    prm::set<R::seq_num>(p, dice.byte() & 15u);
  }
  CommandResult access(std::uint16_t id, Dice& dice) {
    return pair_.dev.access_register(id, dice.chance(40), content(id, dice));
  }
  std::uint32_t vsc(std::uint32_t offset) { return hca_vsc_read(pair_.dev.function().handle(), offset); }
  void vsc(std::uint32_t offset, std::uint32_t v) { hca_vsc_write(pair_.dev.function().handle(), offset, v); }
  // In one of the spaces that the capability leads to: chosen, addressed, read or written.
  void space(Dice& dice) {
    static constexpr std::array<std::uint32_t, 8> kSpaces{1, 2, 3, 7, 10, 0xa, 6, 1};
    vsc(kControl, dice.pick(kSpaces));
    for (std::size_t n = 1 + dice.below(6); n > 0; --n) {
      const std::uint32_t at =
          dice.chance(60) ? static_cast<std::uint32_t>(dice.below(0x400)) * 4 : dice.word() & 0x3ffffffc;
      if (dice.chance(40)) {
        vsc(kData, dice.chance(50) ? dice.byte() : dice.word());
        vsc(kAddress, at | 1u << 31);
      } else {
        vsc(kAddress, at);
        vsc(kData);
      }
    }
  }
  void put(std::uint32_t at, std::uint32_t v) {
    vsc(kData, v);
    vsc(kAddress, at | 1u << 31);
  }
  // As mstflint does: a register in an operation's and a register's TLV.
  void by_mailbox(std::uint16_t id, Dice& dice) {
    constexpr std::uint32_t kMailbox = 0x100000, kControlWord = 0, kIcmd = 3;
    vsc(kControl, kIcmd);
    const std::vector<std::uint8_t> data = content(id, dice);
    std::array<std::uint8_t, prm::operation_tlv::bytes + prm::register_tlv::bytes> head{};
    prm::set<prm::operation_tlv::type>(head.data(), prm::kTlvOperation);
    prm::set<prm::operation_tlv::len>(head.data(), prm::operation_tlv::bytes / 4);
    prm::set<prm::operation_tlv::register_id>(head.data(), id);
    prm::set<prm::operation_tlv::method>(head.data(), dice.chance(40) ? prm::kTlvWrite : prm::kTlvRead);
    prm::set<prm::operation_tlv::tlv_class>(head.data(), prm::kTlvClassRegister);
    std::uint8_t* reg = head.data() + prm::operation_tlv::bytes;
    prm::set<prm::register_tlv::type>(reg, prm::kTlvRegister);
    prm::set<prm::register_tlv::len>(reg, 1 + data.size() / 4);
    if (dice.chance(10)) dice.spoil(head.data(), head.size());
    std::uint32_t at = kMailbox;
    for (std::size_t i = 0; i < head.size(); i += 4, at += 4) put(at, prm::load32(head.data() + i));
    for (std::size_t i = 0; i + 4 <= data.size(); i += 4, at += 4) put(at, prm::load32(data.data() + i));
    std::array<std::uint8_t, 4> control{};
    static constexpr std::array<std::uint32_t, 5> kOps{prm::kIcmdAccessRegister, prm::kIcmdAccessRegister,
                                                       prm::kIcmdGetFwInfo, prm::kIcmdQueryCap, 0x1234};
    prm::set<prm::icmd_control::opcode>(control.data(), dice.pick(kOps));
    prm::set<prm::icmd_control::busy>(control.data(), 1);
    put(kControlWord, prm::load32(control.data()));
    pair_.dev.machine().advance(200'000);
    vsc(kAddress, kControlWord);
    vsc(kData);
  }
  static constexpr std::uint32_t kControl = 4, kAddress = 0x10, kData = 0x14;

  Pair pair_;
  Buffer buffer_;
  Mr mr_;
};

}  // namespace

std::unique_ptr<World> make_congestion(Device& device) { return std::make_unique<Congestion>(device); }
std::unique_ptr<World> make_registers(Device& device) { return std::make_unique<Registers>(device); }

}  // namespace hcasim::bare
