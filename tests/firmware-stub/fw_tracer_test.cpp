// SPDX-License-Identifier: BSD-3-Clause
// The firmware's tracer as Linux uses it (mlx5 diag/fw_tracer.c): texts by MTRC_STDB, a ring behind a key,
// events, blocks that end with a time stamp.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/fw_tracer.h"
#include "prm/icmd.h"

namespace hcasim::bare {
namespace {

using namespace prm::reg;
constexpr unsigned kLogPages = 1;
constexpr std::size_t kRing = std::size_t{4096} << kLogPages;
constexpr std::size_t kBlocks = kRing / prm::kTraceBlockBytes;

struct Message {
  std::uint64_t ns;
  std::string text;
  bool lost;
};

class FwTracer : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }
  void SetUp() override {
    FirmwareTest::SetUp();
    const std::array<std::uint64_t, 4> mask{std::uint64_t{1}
                                            << static_cast<unsigned>(prm::EqeType::kDeviceTracer)};
    eq_ = std::make_unique<EventQueue>(dev(), 6, 0, mask, [this](const prm::Eqe& e) {
      (e.sub_type == prm::kTracerTraces ? traces_ : ownership_) += 1;
    });
    eq_->arm();
    ring_ = machine().memory().allocate(kRing);
    pd_ = std::make_unique<Pd>(dev());
    mr_ = std::make_unique<Mr>(dev(), Mr::of(*pd_, ring_));
    read_strings();
  }
  void TearDown() override {
    if (dev().up()) own(false);
    mr_.reset();
    pd_.reset();
    eq_.reset();
    FirmwareTest::TearDown();
  }
  std::vector<std::uint8_t> reg(std::uint16_t id, bool write, const std::vector<std::uint8_t>& data) {
    const auto r = dev().access_register(id, write, data).must();
    return {r.out.begin() + prm::access_register_out::bytes, r.out.end()};
  }
  bool own(bool on) {
    std::vector<std::uint8_t> data(prm::mtrc_cap::bytes);
    prm::set<prm::mtrc_cap::trace_owner>(data.data(), on ? 1 : 0);
    return prm::get<prm::mtrc_cap::trace_owner>(reg(kMtrcCap, true, data).data()) != 0;
  }
  CommandResult conf(std::uint32_t key, unsigned log_pages = kLogPages) {
    using r = prm::mtrc_conf;
    std::vector<std::uint8_t> data(r::bytes);
    prm::set<r::trace_mode>(data.data(), 1);
    prm::set<r::log_trace_buffer_size>(data.data(), log_pages);
    prm::set<r::trace_mkey>(data.data(), key);
    return dev().access_register(kMtrcConf, true, data);
  }
  CommandResult ctrl(std::optional<bool> on, bool arm) {
    using r = prm::mtrc_ctrl;
    std::vector<std::uint8_t> data(r::bytes);
    if (on) {
      prm::set<r::modify_field_select>(data.data(), 1);
      prm::set<r::trace_status>(data.data(), *on ? 1 : 0);
    }
    prm::set<r::arm_event>(data.data(), arm ? 1 : 0);
    return dev().access_register(kMtrcCtrl, true, data);
  }
  void start() {
    ASSERT_TRUE(own(true));
    EXPECT_OK(conf(mr_->key()));
    EXPECT_OK(ctrl(true, true));
    machine().advance(10'000'000);  // until its first block is due
  }
  void look(std::uint64_t ns = 200'000) {
    machine().advance(ns);
    eq_->poll();
  }
  CommandResult core_dump() {
    return dev().access_register(kCoreDump, true, std::vector<std::uint8_t>(prm::core_dump_reg::bytes));
  }

  void read_strings() {
    using cap = prm::mtrc_cap;
    using db = prm::mtrc_string_db_param;
    const auto caps = reg(kMtrcCap, false, std::vector<std::uint8_t>(cap::bytes));
    ASSERT_EQ(prm::get<cap::trace_to_memory>(caps.data()), 1u);
    ASSERT_EQ(prm::get<cap::num_string_db>(caps.data()), 1u);
    const std::uint8_t* first = caps.data() + cap::string_db_param::bit_off / 8;
    base_ = prm::get<db::string_db_base_address>(first);
    const std::uint32_t size = prm::get<db::string_db_size>(first);
    ASSERT_EQ(size % 64, 0u);
    for (std::uint32_t at = 0; at < size; at += 64) {
      std::vector<std::uint8_t> data(prm::mtrc_stdb::bytes + 64);
      prm::set<prm::mtrc_stdb::read_size>(data.data(), 64);
      prm::set<prm::mtrc_stdb::start_offset>(data.data(), at);
      const auto got = reg(kMtrcStdb, true, data);
      strings_.append(got.begin() + prm::mtrc_stdb::bytes, got.end());
    }
  }

  // What there is of new blocks, put together as the driver does.
  std::vector<Message> read_blocks() {
    std::vector<Message> found;
    for (;;) {
      const std::uint8_t* block = ring_.data() + next_ % kBlocks * prm::kTraceBlockBytes;
      const std::uint64_t stamp = stamp_of(block + 31 * prm::kTraceEntryBytes);
      if (stamp <= last_) return found;
      std::vector<std::pair<std::uint64_t, Message>> open;
      for (std::size_t i = 0; i < prm::kTraceBlockEntries; ++i) {
        const std::uint8_t* e = block + i * prm::kTraceEntryBytes;
        if (const std::uint64_t t = stamp_of(e); t != 0) {
          for (auto& [low, m] : open) {
            m.ns =
                low < (t & 0x7f) ? (t & ~std::uint64_t{0x7f}) | low : ((t - 1) & ~std::uint64_t{0x7f}) | low;
            found.push_back(m);
          }
          open.clear();
        } else {
          take(e, open);
        }
      }
      EXPECT_TRUE(open.empty());
      last_ = stamp;
      ++next_;
    }
  }
  static std::uint64_t stamp_of(const std::uint8_t* e) {
    using s = prm::tracer_timestamp_event;
    if (prm::get<s::event_id>(e) != prm::kTraceTimestamp) return 0;
    return std::uint64_t{prm::get<s::timestamp52_40>(e)} << 40 |
           std::uint64_t{prm::get<s::timestamp39_8>(e)} << 8 | prm::get<s::timestamp7_0>(e);
  }
  void take(const std::uint8_t* e, std::vector<std::pair<std::uint64_t, Message>>& open) {
    using s = prm::tracer_string_event;
    const std::uint32_t value = prm::get<s::string_param>(e);
    if (prm::get<s::tdsn>(e) == 0) {
      ASSERT_GT(value, base_);
      ASSERT_LT(value - base_, strings_.size());
      open.push_back(
          {prm::get<s::timestamp>(e), {0, strings_.c_str() + (value - base_), prm::get<s::lost>(e) != 0}});
      number_ = prm::get<s::tmsn>(e);
      return;
    }
    ASSERT_FALSE(open.empty());
    EXPECT_EQ(prm::get<s::tmsn>(e), number_);
    std::string& text = open.back().second.text;  // one more conversion
    const std::size_t at = text.find('%');
    ASSERT_NE(at, std::string::npos);
    char word[16];
    std::snprintf(word, sizeof word, text[at + 1] == 'x' ? "%x" : text[at + 1] == 'd' ? "%d" : "%u", value);
    text.replace(at, 2, word);
  }
  std::vector<std::string> texts() {
    std::vector<std::string> list;
    for (const Message& m : read_blocks()) {
      EXPECT_EQ(m.text.find('%'), std::string::npos) << m.text;
      list.push_back(m.text);
    }
    return list;
  }

  std::unique_ptr<EventQueue> eq_;
  Buffer ring_;
  std::unique_ptr<Pd> pd_;
  std::unique_ptr<Mr> mr_;
  std::string strings_;
  std::uint32_t base_ = 0, number_ = 0;
  std::uint64_t last_ = 0, next_ = 0;
  unsigned traces_ = 0, ownership_ = 0;
};

TEST_F(FwTracer, TellsOfARefusedCommand) {
  breaks({"object-unknown"});
  start();
  look();
  EXPECT_EQ(traces_, 1u);
  EXPECT_EQ(texts(), std::vector<std::string>{"tracer on, firmware 16.35.1000"});
  EXPECT_OK(ctrl({}, true));
  look();
  EXPECT_EQ(traces_, 1u) << "nothing new";
  const std::uint64_t before = static_cast<std::uint64_t>(machine().now());
  EXPECT_STATUS(name<prm::dealloc_pd_in::pd>(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes, 0x1234),
                CmdStatus::kBadRes);
  EXPECT_EQ(traces_, 1u) << "it waits for more";
  look();
  EXPECT_EQ(traces_, 2u);
  const auto got = read_blocks();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].text, "function 0: command 0x801 op_mod 0x0 refused, status 0x5 syndrome 0x5a0302");
  EXPECT_GE(got[0].ns, before);
  EXPECT_LE(got[0].ns, before + 100'000);
  // Not armed: no event; and one at once when it is.
  EXPECT_STATUS(name<prm::dealloc_pd_in::pd>(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes, 0x1235),
                CmdStatus::kBadRes);
  look();
  EXPECT_EQ(traces_, 2u);
  EXPECT_OK(ctrl({}, true));
  look(20'000);
  EXPECT_EQ(traces_, 3u);
  EXPECT_EQ(texts().size(), 1u);
}

TEST_F(FwTracer, TimesAreThoseOfTheMessages) {
  breaks({"object-unknown"});
  start();
  look();
  texts();
  std::vector<std::uint64_t> before;
  for (unsigned i = 0; i < 40; ++i) {
    before.push_back(static_cast<std::uint64_t>(machine().now()));
    EXPECT_STATUS(name<prm::dealloc_pd_in::pd>(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes, 0x1000 + i),
                  CmdStatus::kBadRes);
  }
  look();
  const auto got = read_blocks();
  ASSERT_EQ(got.size(), before.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_GE(got[i].ns, before[i]) << i;
    EXPECT_LE(got[i].ns, before[i] + 50'000) << i;
    EXPECT_FALSE(got[i].lost);
  }
  EXPECT_EQ(fn().counter("fw_traces_lost"), 0u);
}

// More than the ring holds: the driver sees the last ones, and that it was too slow.
TEST_F(FwTracer, TheRingWraps) {
  breaks({"object-unknown"});
  start();
  for (unsigned i = 0; i < 400; ++i)
    EXPECT_STATUS(name<prm::dealloc_pd_in::pd>(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes, 0x1000 + i),
                  CmdStatus::kBadRes);
  look();
  std::uint64_t newest = 0;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t stamp =
        stamp_of(ring_.data() + i * prm::kTraceBlockBytes + 31 * prm::kTraceEntryBytes);
    EXPECT_NE(stamp, 0u) << i;
    newest = std::max(newest, stamp);
  }
  EXPECT_NEAR(static_cast<double>(newest), static_cast<double>(machine().now()), 300'000);
}

TEST_F(FwTracer, TheCoreDumpIsThereWhenItIsAnswered) {
  start();
  look();
  texts();
  const std::string mkeys = std::to_string(fn().counter("mkeys"));
  EXPECT_OK(core_dump());
  const auto got = texts();  // without more time
  ASSERT_EQ(got.size(), 7u) << got.back();
  EXPECT_EQ(got[0].rfind("core: function 0 state 4, time ", 0), 0u) << got[0];
  EXPECT_NE(got[4].find(", keys " + mkeys + ","), std::string::npos) << got[4];
}

TEST_F(FwTracer, HealthAndQueueErrorsAreTold) {
  start();
  look();
  texts();
  ASSERT_EQ(fn().inject("fault=health,action=syndrome,syndrome=16,ext_syndrome=0x8123,reset=0"), "");
  look();
  const auto got = texts();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0], "function 0: health syndrome 0x10, extended 0x8123, reset requested 0");
}

TEST_F(FwTracer, NothingWithoutOwnershipARingAndBeingOn) {
  breaks({"register-value", "register-length"});
  EXPECT_STATUS(conf(mr_->key()), CmdStatus::kBadParam);
  EXPECT_STATUS(ctrl(true, true), CmdStatus::kBadParam);
  EXPECT_STATUS(core_dump(), CmdStatus::kBadParam);
  ASSERT_TRUE(own(true));
  EXPECT_STATUS(ctrl(true, true), CmdStatus::kBadParam);  // no ring
  EXPECT_STATUS(conf(mr_->key() ^ 1), CmdStatus::kBadParam);
  EXPECT_STATUS(conf(0xffffff00), CmdStatus::kBadParam);
  EXPECT_STATUS(conf(mr_->key(), kLogPages + 1), CmdStatus::kBadParam);  // beyond the key
  EXPECT_STATUS(conf(mr_->key(), 255), CmdStatus::kBadParam);
  EXPECT_OK(conf(mr_->key()));
  EXPECT_OK(ctrl(true, false));
  EXPECT_STATUS(conf(mr_->key()), CmdStatus::kBadParam);  // while it runs
  // Texts that are not there.
  std::vector<std::uint8_t> data(prm::mtrc_stdb::bytes + 64);
  prm::set<prm::mtrc_stdb::read_size>(data.data(), 64);
  prm::set<prm::mtrc_stdb::start_offset>(data.data(), 0xfffffff0);
  EXPECT_STATUS(dev().access_register(kMtrcStdb, true, data), CmdStatus::kBadParam);
  prm::set<prm::mtrc_stdb::start_offset>(data.data(), 0);
  prm::set<prm::mtrc_stdb::read_size>(data.data(), 128);
  EXPECT_STATUS(dev().access_register(kMtrcStdb, true, data), CmdStatus::kBadInpLen);
}

TEST_F(FwTracer, AKeyTakenBackStopsIt) {
  breaks({"object-unknown"});
  start();
  look();
  texts();
  const std::uint64_t lost = fn().counter("fw_traces_lost");
  mr_.reset();
  EXPECT_STATUS(name<prm::dealloc_pd_in::pd>(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes, 0x1234),
                CmdStatus::kBadRes);
  look();
  EXPECT_EQ(fn().counter("fw_traces_lost"), lost + 1);
  EXPECT_TRUE(texts().empty());
  using r = prm::mtrc_ctrl;
  EXPECT_EQ(prm::get<r::trace_status>(reg(kMtrcCtrl, false, std::vector<std::uint8_t>(r::bytes)).data()), 0u);
}

// A tool has it: the driver is refused, and told when it can have it.
TEST_F(FwTracer, AToolHasItFirst) {
  const auto tool = [this](bool on) {
    using op = prm::operation_tlv;
    std::vector<std::uint8_t> box(op::bytes + prm::register_tlv::bytes + prm::mtrc_cap::bytes);
    prm::set<op::type>(box.data(), prm::kTlvOperation);
    prm::set<op::len>(box.data(), op::bytes / 4);
    prm::set<op::register_id>(box.data(), kMtrcCap);
    prm::set<op::method>(box.data(), prm::kTlvWrite);
    prm::set<op::tlv_class>(box.data(), prm::kTlvClassRegister);
    prm::set<prm::register_tlv::type>(box.data() + op::bytes, prm::kTlvRegister);
    prm::set<prm::register_tlv::len>(box.data() + op::bytes, 1 + prm::mtrc_cap::bytes / 4);
    prm::set<prm::mtrc_cap::trace_owner>(box.data() + op::bytes + prm::register_tlv::bytes, on ? 1 : 0);
    hca_t* card = fn().handle();
    const auto write = [card](std::uint32_t at, std::uint32_t value) {
      hca_vsc_write(card, 0x04, 3);
      hca_vsc_write(card, 0x14, value);
      hca_vsc_write(card, 0x10, at | 1u << 31);
    };
    for (std::size_t i = 0; i < box.size(); i += 4)
      write(0x100000 + static_cast<std::uint32_t>(i), prm::load32(&box[i]));
    write(0, std::uint32_t{prm::kIcmdAccessRegister} << 16 | 1);
    machine().advance(100'000);
  };
  tool(true);
  EXPECT_FALSE(own(true));
  EXPECT_EQ(ownership_, 0u);
  tool(false);
  look();
  EXPECT_EQ(ownership_, 1u);
  start();
}

TEST_F(FwTracer, DriversAreToldOfItsRegisters) {
  using regs = prm::mcam_reg::mng_access_reg_cap_mask::access_regs;
  const auto mcam = reg(kMcam, false, std::vector<std::uint8_t>(prm::mcam_reg::bytes));
  EXPECT_EQ(prm::get<regs::tracer_registers>(mcam.data()), 0xfu);
  const auto debug = caps(0xd, true);
  EXPECT_EQ(prm::get<prm::debug_cap::core_dump_general>(debug.data()), 1u);
  EXPECT_EQ(prm::get<prm::debug_cap::resource_dump>(debug.data()), 1u);
}

}  // namespace
}  // namespace hcasim::bare
