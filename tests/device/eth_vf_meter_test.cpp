// SPDX-License-Identifier: BSD-3-Clause
// Flow meters of the switch and of a function's own tables, set by ACCESS_ASO: what of a function's frames is
// green, yellow, red.
#include "eth_vf_later_rig.h"
#include "prm/wqe.h"

namespace hcasim {
namespace {

using bare::EthObject;
using bare::FlowRule;
using bare::Frame;
using Parameters = prm::flow_meter_parameters;
using Meters = std::array<std::uint8_t, prm::kAsoData>;
constexpr std::uint32_t kRed = 0, kYellow = 1, kGreen = 2;
constexpr unsigned kRegister = 5;
constexpr std::uint32_t kFrame = 1500;

struct Rate {
  std::uint32_t mantissa = 0, exponent = 0;
  // In 10^9 bytes/s.
  double bytes_per_ns() const { return static_cast<double>(mantissa) / static_cast<double>(1u << exponent); }
};

class EthVfMeter : public EthVfLater {
 protected:
  void SetUp() override {
    EthVfLater::SetUp();
    EXPECT_TRUE(set_mac(1, kMac).ok());
    vf = probed(1);
    sender = std::make_unique<Sender>(*vf);
    setter = std::make_unique<Sender>(pf);
  }
  void TearDown() override {
    sender.reset();
    setter.reset();
    vf.reset();
    EthVfLater::TearDown();
  }

  struct Sender {
    explicit Sender(bare::Device& d)
        : pd(d),
          cq(d),
          td(bare::make_transport_domain(d)),
          tis(bare::make_tis(d, td.number())),
          sq(d, pd, cq, tis.number()),
          buffer(d.memory().allocate(4096)),
          mr(d, bare::Mr::of(pd, buffer)) {}
    bare::Pd pd;
    bare::Cq cq;
    EthObject td, tis;
    bare::Sq sq;
    bare::Buffer buffer;
    bare::Mr mr;
  };

  CommandResult try_meter(std::uint32_t pd, bare::Device* by = nullptr) {
    using In = prm::create_flow_meter_aso_obj_in;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
    in.set<prm::general_obj_in_cmd_hdr::obj_type>(prm::k::GENERAL_OBJECT_TYPES_FLOW_METER_ASO);
    in.set<In::flow_meter_aso_obj::meter_aso_access_pd>(pd);
    return (by != nullptr ? *by : pf).exec(in, prm::general_obj_out_cmd_hdr::bytes);
  }
  EthObject make_meter() {
    const std::uint32_t id = try_meter(setter->pd.pdn()).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
    return {pf, id, [this, id] { return destroy_meter(id); }};
  }
  CommandResult destroy_meter(std::uint32_t id, bare::Device* by = nullptr) {
    using In = prm::general_obj_in_cmd_hdr;
    Mailbox in(prm::op::DESTROY_GENERAL_OBJECT, In::bytes);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_FLOW_METER_ASO).set<In::obj_id>(id);
    return (by != nullptr ? *by : pf).exec(in);
  }
  static void put(Meters& m, unsigned index, unsigned mode, Rate c, Rate cb, Rate e = {}, Rate eb = {}) {
    std::uint8_t* p = m.data() + index * Parameters::bytes;
    prm::set<Parameters::valid>(p, 1);
    prm::set<Parameters::start_color>(p, kGreen);
    prm::set<Parameters::meter_mode>(p, mode);
    prm::set<Parameters::cir_mantissa>(p, c.mantissa);
    prm::set<Parameters::cir_exponent>(p, c.exponent);
    prm::set<Parameters::cbs_mantissa>(p, cb.mantissa);
    prm::set<Parameters::cbs_exponent>(p, cb.exponent);
    prm::set<Parameters::eir_mantissa>(p, e.mantissa);
    prm::set<Parameters::eir_exponent>(p, e.exponent);
    prm::set<Parameters::ebs_mantissa>(p, eb.mantissa);
    prm::set<Parameters::ebs_exponent>(p, eb.exponent);
  }
  // As the driver sets one of the two meters of an object.
  bool access(Sender& by, std::uint32_t object, const Meters& m, std::uint64_t mask,
              std::uint8_t operands = 0x11, std::uint8_t opmod = prm::kAsoFlowMeter) {
    std::vector<std::uint8_t> wqe(128);
    prm::CtrlSeg ctrl{};
    ctrl.set(prm::WqeOp::kAso, 0, by.sq.sqn(), 8, prm::kCeAlways, false, opmod);
    ctrl.imm = object;
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::AsoCtrlSeg aso{};
    aso.data_mask_mode = prm::kAsoBytewise << 6;
    aso.condition_operands = operands;
    aso.condition_combination = prm::kAsoOr << 6;
    aso.data_mask = mask;
    std::memcpy(wqe.data() + sizeof ctrl, &aso, sizeof aso);
    std::memcpy(wqe.data() + 64, m.data(), m.size());
    by.sq.post_raw(wqe, 2);
    return !by.cq.wait_one().error();
  }
  static constexpr std::uint64_t kFirst = 0x80ffffffull << 32, kSecond = 0x80ffffffull;

  // A root that asks the meter, and behind it a drop with a counter for each colour.
  struct Tables {
    Tables(bare::Device& of, std::uint32_t meter, unsigned index, std::uint32_t before = kGreen,
           unsigned type = kFdb)
        : device(of),
          first(bare::make_flow_table(of, 0, 1, type)),
          second(bare::make_flow_table(of, 2, 2, type)),
          all(bare::make_flow_group(of, first.number(), 0, 0, 0, {}, type)),
          by_color(bare::make_flow_group(of, second.number(), 0, 2, 8, color(0xff), type)) {
      FlowRule r;
      r.table = first.number(), r.group = all.number(), r.type = type;
      r.to = {{bare::FlowDest::kTable, second.number()}};
      r.meter = {meter, index, kRegister, before};
      rules.push_back(bare::make_flow(of, r));
      for (const std::uint32_t c : {kRed, kYellow, kGreen}) {
        counters.push_back(bare::make_flow_counter(of));
        FlowRule d;
        d.table = second.number(), d.group = by_color.number(), d.type = type, d.index = c;
        d.value = color(c);
        d.counter = counters.back().number();
        rules.push_back(bare::make_flow(of, d));
      }
      bare::set_flow_root(of, first.number(), type).must();
    }
    ~Tables() {
      while (!rules.empty()) rules.pop_back();
    }
    static bare::MatchParam color(std::uint32_t c) {
      bare::MatchParam m{};
      prm::set<prm::fte_match_param::misc_parameters_2::metadata_reg_c_5>(m.data(), c);
      return m;
    }
    bare::Device& device;
    EthObject first, second, all, by_color;
    std::vector<EthObject> counters, rules;
  };
  std::uint64_t bytes(const Tables& t, std::uint32_t color) {
    return bare::query_flow_counter(t.device, t.counters[color].number()).bytes;
  }
  std::uint64_t packets(const Tables& t, std::uint32_t color) {
    return bare::query_flow_counter(t.device, t.counters[color].number()).packets;
  }
  // Frames of the function for so long, some 40 Gb/s of them. Returns how long it was, ns.
  std::int64_t send(std::int64_t ns) {
    std::uint8_t* f = sender->buffer.data();
    std::memset(f, 0, kFrame);
    f[0] = f[6] = 2, f[12] = 0x88, f[13] = 0xb5;
    bare::EthWr wr;
    wr.sges = {{sender->mr.start(), sender->mr.key(), kFrame}};
    const std::int64_t from = c.machine.now();
    while (c.machine.now() - from < ns) {
      for (unsigned i = 0; i < 16; ++i) {
        wr.signaled = i == 15;
        sender->sq.post(wr, i == 15);
      }
      EXPECT_FALSE(sender->cq.wait_one().error());
    }
    c.machine.advance(10'000);
    return c.machine.now() - from;
  }

  std::unique_ptr<bare::Device> vf;
  std::unique_ptr<Sender> sender, setter;
};

TEST_F(EthVfMeter, ARateOfBytesIsKept) {
  for (const unsigned index : {0u, 1u}) {
    const EthObject meter = make_meter();
    const Rate rate{33, 8}, burst{8, 10};  // 1.03 Gb/s, 8 KiB
    Meters m{};
    put(m, index, prm::k::FLOW_METER_MODE_BYTES_CALC_WITH_L2, rate, burst);
    ASSERT_TRUE(access(*setter, meter.number(), m, index == 0 ? kFirst : kSecond));
    const Tables t(pf, meter.number(), index);
    const std::int64_t ns = send(4'000'000);
    const double per_packet = (kFrame + 4.0) / kFrame;  // with FCS, which counters do not count
    const double green = static_cast<double>(bytes(t, kGreen)) * per_packet - 8192;
    EXPECT_NEAR(green, rate.bytes_per_ns() * static_cast<double>(ns), 0.01 * green);
    EXPECT_GT(bytes(t, kRed), bytes(t, kGreen));
    EXPECT_EQ(packets(t, kYellow), 0u);
  }
}

// In the tables that what the function sends meets first.
TEST_F(EthVfMeter, OfAFunctionsOwnTables) {
  const std::uint32_t id =
      try_meter(sender->pd.pdn(), vf.get()).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  const Rate rate{33, 8}, burst{8, 10};
  Meters m{};
  put(m, 0, prm::k::FLOW_METER_MODE_BYTES_CALC_WITH_L2, rate, burst);
  ASSERT_TRUE(access(*sender, id, m, kFirst));
  {
    const Tables t(*vf, id, 0, kGreen, bare::kNicTxTable);
    const std::int64_t ns = send(4'000'000);
    const double per_packet = (kFrame + 4.0) / kFrame;
    const double green = static_cast<double>(bytes(t, kGreen)) * per_packet - 8192;
    EXPECT_NEAR(green, rate.bytes_per_ns() * static_cast<double>(ns), 0.01 * green);
    EXPECT_GT(bytes(t, kRed), bytes(t, kGreen));
  }
  destroy_meter(id, vf.get()).must();
}

TEST_F(EthVfMeter, ARateOfPackets) {
  const EthObject meter = make_meter();
  // 128 bytes stand for a packet: 500,000 a second.
  const Rate rate{131, 11}, burst{8, 7};
  Meters m{};
  put(m, 0, prm::k::FLOW_METER_MODE_NUM_PACKETS, rate, burst);
  ASSERT_TRUE(access(*setter, meter.number(), m, kFirst));
  const Tables t(pf, meter.number(), 0);
  const std::int64_t ns = send(4'000'000);
  const double green = static_cast<double>(packets(t, kGreen)) - 8;
  EXPECT_NEAR(green, rate.bytes_per_ns() / 128 * static_cast<double>(ns), 0.01 * green);
}

TEST_F(EthVfMeter, TwoRates) {
  const EthObject meter = make_meter();
  const Rate rate{32, 8}, excess{64, 8}, burst{8, 10};
  Meters m{};
  put(m, 0, prm::k::FLOW_METER_MODE_BYTES_CALC_WITH_L2, rate, burst, excess, burst);
  ASSERT_TRUE(access(*setter, meter.number(), m, kFirst));
  {
    const Tables t(pf, meter.number(), 0);
    const double ns = static_cast<double>(send(4'000'000)), per_packet = (kFrame + 4.0) / kFrame;
    EXPECT_NEAR(static_cast<double>(bytes(t, kGreen)) * per_packet - 8192, rate.bytes_per_ns() * ns,
                0.01 * rate.bytes_per_ns() * ns);
    EXPECT_NEAR(static_cast<double>(bytes(t, kYellow)) * per_packet - 8192, excess.bytes_per_ns() * ns,
                0.01 * excess.bytes_per_ns() * ns);
    EXPECT_GT(packets(t, kRed), 0u);
  }
  // What is yellow before is never green, and what is red stays so.
  const Tables t(pf, meter.number(), 0, kYellow);
  send(100'000);
  EXPECT_EQ(packets(t, kGreen), 0u);
  EXPECT_GT(packets(t, kYellow), 0u);
}

TEST_F(EthVfMeter, WhatIsNoMeterIsRefused) {
  EXPECT_FALSE(try_meter(setter->pd.pdn() + 100).ok());
  EthObject meter = make_meter();
  Meters m{};
  put(m, 0, prm::k::FLOW_METER_MODE_BYTES_CALC_WITH_L2, {1, 0}, {1, 10});
  const auto fails = [&](auto... args) {
    Sender by(pf);
    EXPECT_FALSE(access(by, args...)) << "by a queue of another PD";
  };
  fails(meter.number(), m, kFirst, std::uint8_t{0x11}, prm::kAsoFlowMeter);
  for (const std::uint8_t operands : {0x12, 0x21, 0xff}) {
    Sender by(pf);
    EXPECT_FALSE(access(by, meter.number(), m, kFirst, operands));
  }
  FlowRule r;
  const EthObject table = bare::make_flow_table(pf, 0, 1, kFdb);
  const EthObject group = bare::make_flow_group(pf, table.number(), 0, 0, 0, {}, kFdb);
  r.table = table.number(), r.group = group.number(), r.type = kFdb;
  r.meter = {meter.number(), 0, 8, kGreen};
  EXPECT_FALSE(bare::try_flow(pf, r).ok()) << "no such register";
  r.meter = {meter.number() + 1, 0, kRegister, kGreen};
  EXPECT_FALSE(bare::try_flow(pf, r).ok());
  r.meter = {meter.number(), 0, kRegister, kGreen};
  {
    const EthObject rule = bare::make_flow(pf, r);
    EXPECT_FALSE(destroy_meter(meter.number()).ok()) << "in use";
  }
  EXPECT_TRUE(meter.destroy().ok());
}

}  // namespace
}  // namespace hcasim
