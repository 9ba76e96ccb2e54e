// SPDX-License-Identifier: BSD-3-Clause
// ATS: the driver switches it on, and the IOMMU takes translations back. Each test is a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "replayed.h"
#include "rule_check.h"
#include "two_qps.h"

namespace hcasim::bare {
namespace {

// What the card has asked the IOMMU for, and did not need to.
struct Asked {
  explicit Asked(const Function& f) : misses(f.counter("atc_misses")), hits(f.counter("atc_hits")) {}
  std::uint64_t misses, hits;
};
constexpr const char* kBehindIommu = "link=ib,memory.iotlb=64,memory.atc=1024";
constexpr std::uint32_t kBytes = 16384;  // four pages, or five

void write(TwoQps& qps) {
  qps.a->post(qps.wr(WqeOp::kRdmaWrite, kBytes));
  EXPECT_FALSE(qps.cq.wait_one().error());
}

TEST(Ats, TranslationsAreKeptWhileItIsOn) {
  Machine machine(64 << 20);
  Function& function = machine.add_hca(std::string(kBehindIommu) + ",ats=on");
  machine.start();
  Device device(function);
  device.probe();
  {
    TwoQps qps(device);
    write(qps);
    EXPECT_EQ(Asked(function).misses, 0u) << "no driver has switched it on";
    function.set_ats(true);
    write(qps);
    const Asked first(function);
    EXPECT_GE(first.misses, 8u) << "both ends, four pages each";
    write(qps);
    const Asked again(function);
    EXPECT_EQ(again.misses, first.misses);
    EXPECT_GT(again.hits, first.hits);

    function.invalidate_translations(qps.memory.bus(), 2 * 4096);
    EXPECT_EQ(function.counter("ats_invalidations"), 1u);
    write(qps);
    EXPECT_EQ(Asked(function).misses, again.misses + 2);
    function.invalidate_translations(0, 0);
    write(qps);
    EXPECT_GE(Asked(function).misses, again.misses + 2 + 8);

    const Asked before(function);
    function.set_ats(false);
    write(qps);
    EXPECT_EQ(Asked(function).misses, before.misses);
    EXPECT_EQ(Asked(function).hits, before.hits);
  }
  device.teardown();
}

// Where no driver can switch it, the profile has the say alone.
TEST(Ats, WithoutTheCapabilityTheProfileHasTheSay) {
  Machine machine(64 << 20);
  Function& function = machine.add_hca(kBehindIommu);
  machine.start();
  Device device(function);
  device.probe();
  {
    TwoQps qps(device);
    write(qps);
    const Asked first(function);
    EXPECT_GT(first.misses, 0u);
    function.set_ats(false);
    write(qps);
    EXPECT_GT(Asked(function).hits, first.hits);
  }
  device.teardown();
}

// Keys and memory of DevX may ask for it where the card shows it (cmd_hca_cap.ats), and nowhere else.
TEST(Ats, KeysAskForItWhereTheCardShowsIt) {
  breaks({"cap-not-offered"});
  Machine machine(64 << 20);
  Function& shown = machine.add_hca("link=ib,ats=on");
  Function& not_shown = machine.add_hca("link=ib");
  machine.start();
  for (Function* function : {&shown, &not_shown}) {
    Device device(*function);
    device.probe();
    EXPECT_EQ(device.cap<prm::cmd_hca_cap::ats>(), function == &shown ? 1u : 0u);
    {
      Pd pd(device);
      const Buffer memory = device.memory().allocate(4096);
      using In = prm::create_mkey_in;
      using C = In::memory_key_mkey_entry;
      const auto made = [&](unsigned mode) {
        Mailbox in(prm::op::CREATE_MKEY, In::bytes + 16);
        in.set<C::access_mode_1_0>(1).set<C::lr>(1).set<C::pd>(pd.pdn()).set<C::qpn>(0xffffff);
        in.set<C::log_page_size>(12).set<C::len>(4096).set<C::translations_octword_size>(1);
        in.set<In::translations_octword_actual_size>(1).set<C::ma_translation_mode>(mode);
        prm::store64(in.data() + In::bytes, memory.bus());
        return device.exec(in);
      };
      const auto key = made(1);
      EXPECT_EQ(key.status, function == &shown ? prm::CmdStatus::kOk : prm::CmdStatus::kBadParam);
      EXPECT_EQ(made(2).status, prm::CmdStatus::kBadParam);
      if (key.ok()) {
        Mailbox gone(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes);
        gone.set<prm::destroy_mkey_in::mkey_index>(key.get<prm::create_mkey_out::mkey_index>());
        device.exec(gone).must();
      }
    }
    device.teardown();
  }
}

TEST(Ats, IsRecordedAndReplayed) {
  const test::Folder folder;
  const std::string recording = folder / "r", trace = folder / "t";
  {
    Machine machine(64 << 20);
    Function& function = machine.add_hca(test::recorded(recording, trace) + kBehindIommu + ",ats=on");
    machine.start();
    Device device(function);
    device.probe();
    {
      TwoQps qps(device);
      function.set_ats(true);
      for (int round = 0; round < 3; ++round) {
        write(qps);
        function.invalidate_translations(qps.memory.bus(), 4096);
      }
      function.set_ats(false);
      write(qps);
      EXPECT_GT(Asked(function).hits, 0u);
    }
    device.teardown();
  }
  test::expect_same(recording, trace);
}

}  // namespace
}  // namespace hcasim::bare
