// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include "fixture.h"

namespace hcasim::bare {
namespace {

using In = prm::manage_pages_in;
enum : std::uint16_t { kCantGive = 0, kGive = 1, kTake = 2 };

class Pages : public FirmwareTest {
 protected:
  CommandResult give(const std::vector<std::uint64_t>& list, std::uint32_t count) {
    Mailbox in(prm::op::MANAGE_PAGES, In::bytes + list.size() * 8, kGive);
    in.set<In::input_num_entries>(count);
    for (std::size_t i = 0; i < list.size(); ++i) prm::set<In::pas>(in.data(), i, list[i]);
    return dev().exec(in);
  }
  CommandResult take(std::uint32_t count, std::size_t room) {
    Mailbox in(prm::op::MANAGE_PAGES, In::bytes, kTake);
    in.set<In::input_num_entries>(count);
    return dev().exec(in, prm::manage_pages_out::bytes + 8 * room);
  }
  // A key whose list fills `pages` pages of context memory; the addresses in it are never used.
  MkeySpec big_key(const Pd& pd, unsigned pages) {
    MkeySpec s;
    s.pd = pd.pdn();
    s.mtt.assign(pages * 512, 0x100000);
    s.len = s.mtt.size() << 12;
    return s;
  }
};

TEST_F(Pages, GivenInEarnestAndAllReturned) {
  EXPECT_GT(dev().pages_given(), 0u);
  EXPECT_EQ(fn().counter("fw_pages"), dev().pages_given());
}

TEST_F(Pages, RefusesWhatIsNoPage) {
  breaks({"page-address", "page-given-twice", "page-list"});
  const Buffer page = dev().memory().allocate(4096);
  const auto before = fn().counter("fw_pages");
  EXPECT_STATUS(give({page.bus() + 512}, 1), CmdStatus::kBadParam);
  EXPECT_STATUS(give({page.bus(), page.bus()}, 2), CmdStatus::kBadParam);
  EXPECT_STATUS(give({page.bus()}, 2), CmdStatus::kBadParam);
  EXPECT_STATUS(give({page.bus()}, 0xffffffff), CmdStatus::kBadParam);
  EXPECT_EQ(fn().counter("fw_pages"), before) << "a refused list was taken in part";
  EXPECT_OK(give({page.bus()}, 1));
  EXPECT_STATUS(give({page.bus()}, 1), CmdStatus::kBadParam);
  const auto r = take(1, 1).must();
  EXPECT_EQ(r.get<prm::manage_pages_out::output_num_entries>(), 1u);
  EXPECT_EQ(prm::get<prm::manage_pages_out::pas>(r.out.data(), 0), page.bus());
}

TEST_F(Pages, Page0IsTakenAndNamed) {
  breaks({"page-address"});
  EXPECT_OK(give({0}, 1));
  const auto r = take(1, 1).must();
  ASSERT_EQ(r.get<prm::manage_pages_out::output_num_entries>(), 1u);
  EXPECT_EQ(prm::get<prm::manage_pages_out::pas>(r.out.data(), 0), 0u);
}

TEST_F(Pages, TakeReturnsNoMoreThanThereIsRoomFor) {
  const Buffer pages = dev().memory().allocate(4 * 4096);
  EXPECT_OK(give({pages.bus(), pages.bus() + 4096, pages.bus() + 8192, pages.bus() + 12288}, 4));
  unsigned back = 0;
  for (const std::size_t room : {std::size_t{0}, std::size_t{1}, std::size_t{3}})
    back += static_cast<unsigned>(take(1000, room).must().get<prm::manage_pages_out::output_num_entries>());
  EXPECT_EQ(back, 4u);
  EXPECT_OK(give({}, 0));  // the kernel gives none, too
}

TEST_F(Pages, MoreAreAskedForAsObjectsGrow) {
  Pd pd(dev());
  const std::size_t before = dev().pages_given();
  std::vector<std::unique_ptr<Mr>> keys;
  for (unsigned i = 0; i < 24; ++i) keys.push_back(std::make_unique<Mr>(dev(), big_key(pd, 64)));
  EXPECT_GT(fn().counter("fw_page_requests"), 0u);
  EXPECT_GE(dev().pages_given(), before + 24 * 64 - 256);
  EXPECT_GE(fn().counter("fw_pages"), fn().counter("fw_pages_used"));
  keys.clear();
}

// One object larger than all that is left: the command waits until the driver has given, others go on.
TEST_F(Pages, ACommandWaitsForItsPages) {
  Pd pd(dev());
  const MkeySpec spec = big_key(pd, 1500);
  Mr key(dev(), spec);
  EXPECT_GE(fn().counter("fw_pages"), 1500u);
}

TEST_F(Pages, WithNobodyToAskTheCommandFails) {
  breaks({"teardown-objects"});
  dev().teardown();
  dev().cmd().start();
  dev().enable_hca().must();
  dev().give_pages(dev().query_pages(1));
  dev().give_pages(dev().query_pages(2));
  dev().init_hca().must();
  const auto pd = dev().exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes)).must();
  using C = prm::create_mkey_in::memory_key_mkey_entry;
  constexpr std::size_t kEntries = 512 * 300;
  Mailbox in(prm::op::CREATE_MKEY, prm::create_mkey_in::bytes + kEntries * 8);
  in.set<C::access_mode_1_0>(1)
      .set<C::lr>(1)
      .set<C::pd>(pd.get<prm::alloc_pd_out::pd>())
      .set<C::log_page_size>(12);
  in.set<C::len>(std::uint64_t{kEntries} << 12).set<C::translations_octword_size>(kEntries / 2);
  in.set<prm::create_mkey_in::translations_octword_actual_size>(kEntries / 2);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kNoRes);
  dev().give_pages(400);
  EXPECT_OK(dev().exec(in));
  dev().teardown_hca().must();
  while (dev().take_pages(256) != 0) {
  }
  dev().disable_hca().must();
  EXPECT_EQ(dev().pages_given(), 0u);
  dev().probe();
}

// A driver that polls its commands and does not hear the page request.
class DeafPages : public Pages {
 protected:
  DeviceOptions device_options() const override {
    DeviceOptions o;
    o.event_commands = false;
    return o;
  }
  void SetUp() override {
    Pages::SetUp();
    fn().on_interrupt(0, [] {});
  }
  // CREATE_MKEY that needs more pages than there are.
  Mailbox greedy(std::uint32_t pd) {
    using C = prm::create_mkey_in::memory_key_mkey_entry;
    constexpr std::size_t kEntries = 512 * 300;
    Mailbox in(prm::op::CREATE_MKEY, prm::create_mkey_in::bytes + kEntries * 8);
    in.set<C::access_mode_1_0>(1).set<C::lr>(1).set<C::pd>(pd).set<C::log_page_size>(12);
    in.set<C::len>(std::uint64_t{kEntries} << 12).set<C::translations_octword_size>(kEntries / 2);
    in.set<prm::create_mkey_in::translations_octword_actual_size>(kEntries / 2);
    return in;
  }
};

TEST_F(DeafPages, WaitingCommandLetsOthersPass) {
  Pd pd(dev());
  std::optional<CommandResult> result;
  dev().cmd().submit(greedy(pd.pdn()), 16, [&](const CommandResult& r) { result = r; });
  machine().advance(10'000'000);
  dev().cmd().poll();
  EXPECT_FALSE(result);
  { Pd another(dev()); }
  EXPECT_FALSE(result);
  dev().give_pages(400);
  machine().advance(10'000'000);
  dev().cmd().poll();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ok()) << result->text();
  EXPECT_OK((name<prm::destroy_mkey_in::mkey_index>(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes,
                                                    result->get<prm::create_mkey_out::mkey_index>())));
}

TEST_F(DeafPages, RefusalFailsTheCommandAndNotTheNext) {
  Pd pd(dev());
  std::optional<CommandResult> result;
  dev().cmd().submit(greedy(pd.pdn()), 16, [&](const CommandResult& r) { result = r; });
  machine().advance(10'000'000);
  Mailbox cant(prm::op::MANAGE_PAGES, In::bytes, kCantGive);
  EXPECT_OK(dev().exec(cant));
  machine().advance(10'000'000);
  dev().cmd().poll();
  ASSERT_TRUE(result);
  EXPECT_STATUS(*result, CmdStatus::kNoRes);
  dev().give_pages(400);
  const auto r = dev().exec(greedy(pd.pdn())).must();
  EXPECT_OK((name<prm::destroy_mkey_in::mkey_index>(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes,
                                                    r.get<prm::create_mkey_out::mkey_index>())));
}

TEST_F(DeafPages, TeardownWhileACommandWaits) {
  breaks({"access-before-init", "teardown-objects"});
  Pd pd(dev());
  std::optional<CommandResult> result;
  dev().cmd().submit(greedy(pd.pdn()), 16, [&](const CommandResult& r) { result = r; });
  machine().advance(10'000'000);
  EXPECT_OK(dev().teardown_hca());
  machine().advance(10'000'000);
  dev().cmd().poll();
  ASSERT_TRUE(result);
  EXPECT_STATUS(*result, CmdStatus::kBadSysState);
  dev().function_reset();
  dev().probe();
}

// What waits is forgotten with everything else.
TEST_F(DeafPages, ResetWhileACommandWaits) {
  Pd pd(dev());
  std::optional<CommandResult> result;
  dev().cmd().submit(greedy(pd.pdn()), 16, [&](const CommandResult& r) { result = r; });
  machine().advance(10'000'000);
  dev().cmd().poll();
  EXPECT_FALSE(result);
  dev().function_reset();
  machine().advance(10'000'000);
  dev().probe();
  const auto used = fn().counter("fw_pages_used");
  dev().give_pages(400);
  machine().advance(10'000'000);
  dev().cmd().poll();
  EXPECT_FALSE(result);
  EXPECT_EQ(fn().counter("fw_pages_used"), used) << "the command has its pages after the reset";
}

TEST_F(Pages, QueryKnowsThreeKinds) {
  breaks({"cmd-function", "cmd-op-mod"});
  EXPECT_GT(dev().query_pages(1), 0);
  EXPECT_GT(dev().query_pages(2), 0);
  EXPECT_GE(dev().query_pages(3), 0);
  EXPECT_STATUS(dev().exec(Mailbox(prm::op::QUERY_PAGES, prm::query_pages_in::bytes, 4)),
                CmdStatus::kBadParam);
  Mailbox other(prm::op::QUERY_PAGES, prm::query_pages_in::bytes, 1);
  other.set<prm::query_pages_in::function_id>(3);
  EXPECT_STATUS(dev().exec(other), CmdStatus::kBadParam);
}

}  // namespace
}  // namespace hcasim::bare
