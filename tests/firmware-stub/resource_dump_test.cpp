// SPDX-License-Identifier: BSD-3-Clause
// Dumps of objects (RESOURCE_DUMP), as Linux asks for them (mlx5 diag/rsc_dump.c): the menu by name, pieces
// into memory behind a key; and as tools do, within the register.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "driver/bare/eth.h"
#include "driver/bare/qp.h"
#include "fixture.h"
#include "prm/access_registers.h"

namespace hcasim::bare {
namespace {

using R = prm::resource_dump;
using namespace prm::reg;
enum : std::uint16_t {
  kCommand = 0xfffa,
  kTerminate = 0xfffb,
  kError = 0xfffc,
  kInfo = 0xfffe,
  kMenu = 0xffff
};

struct Segment {
  std::uint16_t type;
  std::vector<std::uint8_t> bytes;
  std::uint32_t index1() const { return prm::get<prm::resource_dump_resource_segment::index1>(bytes.data()); }
  std::uint32_t index2() const { return prm::get<prm::resource_dump_resource_segment::index2>(bytes.data()); }
  const std::uint8_t* payload() const { return bytes.data() + prm::resource_dump_resource_segment::bytes; }
};

struct Ask {
  std::uint16_t segment = kMenu;
  std::uint32_t index1 = 0, index2 = 0;
  std::uint16_t count1 = 0, count2 = 0;
};

class ResourceDump : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }
  void SetUp() override {
    FirmwareTest::SetUp();
    page_ = machine().memory().allocate(4096);
    pd_ = std::make_unique<Pd>(dev());
    mr_ = std::make_unique<Mr>(dev(), Mr::physical(*pd_));
    for (const Segment& s : dump({})) {
      if (s.type == kMenu) read_menu(s);
    }
  }
  void TearDown() override {
    mr_.reset();
    pd_.reset();
    FirmwareTest::TearDown();
  }
  static std::vector<std::uint8_t> request(const Ask& ask) {
    std::vector<std::uint8_t> data(R::bytes);
    prm::set<R::segment_type>(data.data(), ask.segment);
    prm::set<R::index1>(data.data(), ask.index1);
    prm::set<R::index2>(data.data(), ask.index2);
    prm::set<R::num_of_obj1>(data.data(), ask.count1);
    prm::set<R::num_of_obj2>(data.data(), ask.count2);
    return data;
  }
  void behind_key(std::vector<std::uint8_t>& data, std::uint32_t size) {
    prm::set<R::mkey>(data.data(), mr_->key());
    prm::set<R::address>(data.data(), page_.bus());
    prm::set<R::size>(data.data(), size);
  }
  CommandResult access(const std::vector<std::uint8_t>& data, bool write = true) {
    return dev().access_register(kResourceDump, write, data);
  }
  // All of it, put together; the driver's loop.
  std::vector<std::uint8_t> fetch(const Ask& ask, std::uint32_t size = 4096) {
    std::vector<std::uint8_t> all, data = request(ask);
    behind_key(data, size);
    for (bool more = true; more;) {
      const unsigned sequence = prm::get<R::seq_num>(data.data());
      const auto r = access(data).must();
      data.assign(r.out.begin() + prm::access_register_out::bytes, r.out.end());
      EXPECT_EQ(prm::get<R::seq_num>(data.data()), (sequence + 1) % 16);
      const std::uint32_t got = prm::get<R::size>(data.data());
      EXPECT_LE(got, size);
      EXPECT_GT(got, 0u);
      all.insert(all.end(), page_.data(), page_.data() + got);
      more = prm::get<R::more_dump>(data.data()) != 0;
    }
    return all;
  }
  static std::vector<Segment> segments(const std::vector<std::uint8_t>& all) {
    using header = prm::resource_dump_segment_header;
    std::vector<Segment> list;
    for (std::size_t at = 0; at + 4 <= all.size();) {
      const std::size_t len = prm::get<header::length_dw>(&all[at]) * std::size_t{4};
      if (len < 4 || at + len > all.size()) {
        ADD_FAILURE() << "a segment of " << len << " bytes at " << at << " of " << all.size();
        break;
      }
      list.push_back({static_cast<std::uint16_t>(prm::get<header::segment_type>(&all[at])),
                      {all.begin() + static_cast<std::ptrdiff_t>(at),
                       all.begin() + static_cast<std::ptrdiff_t>(at + len)}});
      at += len;
    }
    return list;
  }
  std::vector<Segment> dump(const Ask& ask, std::uint32_t size = 4096) {
    auto list = segments(fetch(ask, size));
    EXPECT_GE(list.size(), 4u);
    EXPECT_EQ(list.front().type, kInfo);
    EXPECT_EQ(list[1].type, kCommand);
    EXPECT_EQ(list.back().type, kTerminate);
    return list;
  }
  // What lies between its beginning and its end.
  std::vector<Segment> objects(const Ask& ask, std::uint32_t size = 4096) {
    auto list = dump(ask, size);
    return {list.begin() + 2, list.end() - 1};
  }
  void read_menu(const Segment& s) {
    using m = prm::resource_dump_menu_segment;
    using r = prm::resource_dump_menu_record;
    for (unsigned i = 0; i < prm::get<m::num_of_records>(s.bytes.data()); ++i) {
      const std::uint8_t* record = s.bytes.data() + m::bytes + i * r::bytes;
      const char* name = reinterpret_cast<const char*>(record) + r::segment_name::bit_off / 8;
      menu_[{name, strnlen(name, 16)}] = static_cast<std::uint16_t>(prm::get<r::segment_type>(record));
    }
  }

  Buffer page_;
  std::unique_ptr<Pd> pd_;
  std::unique_ptr<Mr> mr_;
  std::map<std::string, std::uint16_t> menu_;
};

TEST_F(ResourceDump, TheMenuHasWhatLinuxAsksFor) {
  for (const char* name :
       {"FULL_QPC", "FULL_CQC", "FULL_EQC", "FULL_SRQC", "SND_BUFF", "RCV_BUFF", "SRQ_BUFF", "CQ_BUFF",
        "EQ_BUFF", "SX_SLICE_ALL", "RX_SLICE_ALL", "PRM_QUERY_QP", "PRM_QUERY_CQ", "PRM_QUERY_MKEY"})
    EXPECT_NE(menu_[name], 0u) << name;
  EXPECT_EQ(menu_.size(), 14u);
}

TEST_F(ResourceDump, ContextsAreWhatTheQueriesAnswer) {
  Cq cq(dev());
  Qp qp(dev(), *pd_, cq, cq);
  const auto qpc = objects({menu_["FULL_QPC"], qp.qpn(), 0, 1});
  ASSERT_EQ(qpc.size(), 1u);
  EXPECT_EQ(qpc[0].type, menu_["FULL_QPC"]);
  EXPECT_EQ(qpc[0].index1(), qp.qpn());
  const auto queried = name<prm::query_qp_in::qpn>(prm::op::QUERY_QP, prm::query_qp_in::bytes, qp.qpn(),
                                                   prm::query_qp_out::bytes)
                           .must();
  constexpr std::size_t at = prm::query_qp_out::qpc::bit_off / 8;
  ASSERT_EQ(qpc[0].bytes.size(), prm::resource_dump_resource_segment::bytes + prm::qpc::bytes);
  EXPECT_EQ(std::memcmp(qpc[0].payload(), queried.out.data() + at, prm::qpc::bytes), 0);

  const auto cqc = objects({menu_["FULL_CQC"], cq.cqn(), 0, 1});
  ASSERT_EQ(cqc.size(), 1u);
  EXPECT_EQ(prm::get<prm::cqc::log_cq_size>(cqc[0].payload()),
            name<prm::query_cq_in::cqn>(prm::op::QUERY_CQ, prm::query_cq_in::bytes, cq.cqn(),
                                        prm::query_cq_out::bytes)
                .must()
                .get<prm::query_cq_out::cq_context::log_cq_size>());

  const auto whole = objects({menu_["PRM_QUERY_QP"], qp.qpn()});
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(std::memcmp(whole[0].payload(), queried.out.data(), prm::query_qp_out::bytes), 0);
  const auto key = objects({menu_["PRM_QUERY_MKEY"], mr_->index()});
  ASSERT_EQ(key.size(), 1u);
  EXPECT_EQ(prm::get<prm::query_mkey_out::memory_key_mkey_entry::pd>(key[0].payload()), pd_->pdn());
}

TEST_F(ResourceDump, ARingIsWhatLiesInMemory) {
  Cq cq(dev());
  Qp qp(dev(), *pd_, cq, cq);  // 64 WQEBBs
  const auto all = objects({menu_["SND_BUFF"], qp.qpn(), 0, 1, 0xffff}, 256);
  ASSERT_EQ(all.size(), 64u);
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(all[i].index2(), i);
    EXPECT_EQ(all[i].bytes.size(), prm::resource_dump_resource_segment::bytes + 64);
  }
  EXPECT_EQ(objects({menu_["SND_BUFF"], qp.qpn(), 3}).size(), 1u);
  EXPECT_EQ(objects({menu_["SND_BUFF"], qp.qpn(), 62, 0, 10}).size(), 2u);
  EXPECT_EQ(objects({menu_["CQ_BUFF"], cq.cqn(), 0, 1, 0xffff}).size(), 256u);
  // An EQE that has been written: of the commands, say.
  unsigned written = 0;
  for (std::uint32_t eqn = 1; eqn < 8; ++eqn) {
    const auto ring = objects({menu_["EQ_BUFF"], eqn, 0, 1, 0xffff});
    for (const Segment& s : ring)
      if (s.type == menu_["EQ_BUFF"])
        written += s.payload()[1] == static_cast<std::uint8_t>(prm::EqeType::kCmd) ? 1 : 0;
  }
  EXPECT_GT(written, 0u);
}

TEST_F(ResourceDump, EnginesTellWhatTheyHaveCounted) {
  const auto list = objects({menu_["RX_SLICE_ALL"]});
  ASSERT_EQ(list.size(), 1u);
  std::map<std::string, std::uint64_t> counted;
  const std::size_t bytes = list[0].bytes.size() - prm::resource_dump_resource_segment::bytes;
  for (std::size_t at = 0; at + 24 <= bytes; at += 24) {
    const char* name = reinterpret_cast<const char*>(list[0].payload()) + at;
    counted[{name, strnlen(name, 16)}] = prm::load64(list[0].payload() + at + 16);
  }
  EXPECT_EQ(counted.at("interrupts"), fn().counter("interrupts") - 1) << "that of the dump's own answer";
  EXPECT_EQ(counted.at("rx_packets"), fn().counter("rx_packets"));
  EXPECT_EQ(objects({menu_["SX_SLICE_ALL"]}).size(), 1u);
}

TEST_F(ResourceDump, WhatIsNotThereIsAnErrorSegment) {
  for (const Ask& ask : {Ask{menu_["FULL_QPC"], 0x7777, 0, 1}, Ask{menu_["SND_BUFF"], 0x7777, 0, 1, 0xffff},
                         Ask{menu_["PRM_QUERY_MKEY"], 0x777777}}) {
    const auto list = objects(ask);
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].type, kError);
    EXPECT_STREQ(reinterpret_cast<const char*>(list[0].bytes.data()) +
                     prm::resource_dump_error_segment::error::bit_off / 8,
                 "no such object to be dumped");
  }
  Cq cq(dev());
  const auto list = objects({menu_["CQ_BUFF"], cq.cqn(), 256});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].type, kError);
}

TEST_F(ResourceDump, PieceByPieceWithinTheRegister) {
  const auto at_once = fetch({});
  std::vector<std::uint8_t> all, data = request({});
  for (bool more = true; more;) {
    prm::set<R::inline_dump>(data.data(), 1);
    const auto r = access(data, false).must();
    data.assign(r.out.begin() + prm::access_register_out::bytes, r.out.end());
    const std::uint8_t* piece = data.data() + R::inline_data::bit_off / 8;
    ASSERT_LE(prm::get<R::size>(data.data()), 208u);
    all.insert(all.end(), piece, piece + prm::get<R::size>(data.data()));
    more = prm::get<R::more_dump>(data.data()) != 0;
  }
  EXPECT_EQ(all, at_once);
}

TEST_F(ResourceDump, WhatIsRefused) {
  breaks({"register-value", "cmd-function", "dma-refused-read"});
  const auto refused = [this](Ask ask, std::uint32_t size, auto change) {
    auto data = request(ask);
    behind_key(data, size);
    change(data.data());
    const auto r = access(data);
    EXPECT_TRUE(r.done);
    return !r.ok();
  };
  const auto as_it_is = [](std::uint8_t*) {};
  EXPECT_FALSE(refused({}, 4096, as_it_is));
  EXPECT_TRUE(refused({0x4242}, 4096, as_it_is));
  EXPECT_TRUE(refused({kMenu, 0, 0, 0, 1}, 4096, as_it_is));
  EXPECT_TRUE(refused({}, 0, as_it_is));
  EXPECT_TRUE(refused({menu_["FULL_QPC"], 1, 0, 2}, 4096, as_it_is));
  EXPECT_TRUE(refused({menu_["FULL_QPC"], 1, 0, 1, 5}, 4096, as_it_is));
  EXPECT_TRUE(
      refused({}, 4096, [](std::uint8_t* d) { prm::set<R::device_opaque>(d, ~std::uint64_t{0} - 3); }));
  EXPECT_TRUE(refused({}, 4096, [](std::uint8_t* d) { prm::set<R::device_opaque>(d, 2); }));
  EXPECT_TRUE(refused({}, 4096, [](std::uint8_t* d) { prm::set<R::mkey>(d, 0x77777700); }));
  EXPECT_TRUE(refused({}, 4096, [](std::uint8_t* d) { prm::set<R::vhca_id>(d, 99); }));
  // A ring whose memory the host has taken back is not read.
  Cq cq(dev());
  machine().memory().set_faulting(cq.ring().bus(0), 4096, true);
  EXPECT_TRUE(refused({menu_["CQ_BUFF"], cq.cqn(), 0, 1, 1}, 4096, as_it_is));
  machine().memory().set_faulting(cq.ring().bus(0), 4096, false);
}

}  // namespace
}  // namespace hcasim::bare
