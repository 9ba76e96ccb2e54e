// SPDX-License-Identifier: BSD-3-Clause
// States of earlier builds, of this version and of those before: each is loaded and goes on; those of this
// version are saved again as the same bytes. They are of an InfiniBand card with a virtual function, two
// Ethernet cards on a cable, and from version 5 on two on a switch, with QPs in the midst of messages. The
// second test makes such a state, and the profile of its cards; where the version of states is raised,
// HCASIM_NEW_GOLDEN=FILE has it write the next one there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../files.h"
#include "card/state/version.h"
#include "driver/bare/saved.h"
#include "golden.h"
#include "rule_check.h"
#include "two_qps.h"

namespace hcasim::bare {
namespace {

using test::packed;
using test::unpacked;

// The profile of a state's first card, as a file: later versions may have other values by default.
std::string profile_of(const std::string& state) {
  const test::Folder folder;
  test::write_bytes(folder / "state", state);
  std::istringstream said(test::run(STATE_TOOL " show " + (folder / "state")).text);
  std::string toml, section, key;
  for (std::string line; std::getline(said, line);) {
    const std::size_t at = line.find(" = "), made = line.find("cards[0].made_as.");
    if (made != 0 || at == std::string::npos) continue;
    const std::string what = line.substr(17, at - 17), value = line.substr(at + 3);
    if (what == "profile" || what == "generation") {
      toml += (what == "profile" ? "name" : what) + " = " + value + "\n";
    } else if (what.find("].name") != std::string::npos) {
      const std::size_t dot = value.find('.');
      if (value.substr(1, dot - 1) != section) {
        section = value.substr(1, dot - 1);
        toml += "[" + section + "]\n";
      }
      key = value.substr(dot + 1, value.size() - dot - 2);
    } else if (what.find("].value") != std::string::npos) {
      toml += key + " = " + value.substr(1, value.size() - 2) + "\n";
    }
  }
  return toml;
}

// The cards of the state.
constexpr std::uint32_t kFirstWithSwitch = 5;
struct Cards {
  Cards(const std::string& profile, std::uint32_t version) : machine(std::size_t{64} << 20) {
    const std::string more = profile.empty() ? "" : ",profile=" + profile;
    machine.add_hca("link=ib,name=ib,vfs=1,node_guid=0002c90300000010" + more);
    machine.add_hca("link=eth,name=left,node_guid=0002c90300000020" + more);
    machine.add_hca("link=eth,name=right,cable=left,node_guid=0002c90300000030" + more);
    if (version >= kFirstWithSwitch)
      for (const char* guid : {"40", "50"})
        machine.add_hca(std::string("link=eth,switch=s,node_guid=0002c903000000") + guid + more);
    machine.start();
  }
  Machine machine;
};

// A QP of the one card and one of the other are joined, and no longer with those of their own.
void join(TwoQps& from, TwoQps& to) {
  const auto leads_to = [](const TwoQps& end, const Qp& qp) {
    QpAttr attr;
    attr.remote_qpn = qp.qpn();
    attr.roce.dgid = end.device.roce_entry(end.device.sgid_index()).gid;
    attr.roce.dmac = end.device.mac();
    return attr;
  };
  from.a->to_reset();
  to.b->to_reset();
  from.a->connect(leads_to(to, *to.b));
  to.b->connect(leads_to(from, *from.a));
}

class GoldenState : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(GoldenState, IsLoadedAndGoesOn) {
  const std::string golden = GOLDEN + std::to_string(GetParam());
  Cards cards(golden + ".toml", GetParam());
  const std::string state = unpacked(test::bytes_of(golden + ".gz"));
  ASSERT_GT(state.size(), 100'000u);
  ASSERT_EQ(load_state(state), "");
  if (GetParam() == saved::kVersion) {
    EXPECT_TRUE(save_state() == state) << "hcasim state diff says what is different";
  }
  for (std::size_t i = 0; i < cards.machine.functions(); ++i)
    EXPECT_GT(cards.machine.function(i).counter("rx_packets"), 0u) << i;
  cards.machine.set_now(hca_sim_time());
  // With other memory: whatever it does, it comes to its end.
  breaks({"dma-refused-cqe", "dma-refused-eqe", "dma-refused-payload", "dma-refused-read"});
  cards.machine.advance(1'000'000);
  EXPECT_TRUE(save_state() != state);
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenState, ::testing::Range(std::uint32_t{1}, saved::kVersion + 1));

TEST(GoldenStates, TheNextOneCanBeMade) {
  const test::Folder folder;
  const char* const asked = std::getenv("HCASIM_NEW_GOLDEN");
  const std::string to = asked ? asked : folder / "state";
  Cards cards("", saved::kVersion);
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<TwoQps>> qps;
  for (std::size_t i = 0; i < cards.machine.functions(); ++i) {
    devices.push_back(std::make_unique<Device>(cards.machine.function(i)));
    devices.back()->probe();
    qps.push_back(std::make_unique<TwoQps>(*devices.back(), QpAttr{}, 1 << 18));
    qps.back()->a->post(qps.back()->wr(prm::WqeOp::kRdmaWrite, 64));
    qps.back()->cq.wait_one();
  }
  for (std::size_t i = 0; i < 3; ++i) {
    qps[i]->a->post(qps[i]->wr(prm::WqeOp::kRdmaWrite, 100'000));
    qps[i]->b->post(qps[i]->wr(prm::WqeOp::kRdmaRead, 30'000));
  }
  join(*qps[3], *qps[4]);
  SendWr over = qps[3]->wr(prm::WqeOp::kRdmaWrite, 100'000);
  over.raddr = qps[4]->mr.start();
  over.rkey = qps[4]->mr.key();
  qps[3]->a->post(over);
  cards.machine.advance(3000);
  const std::string state = save_state();
  test::write_bytes(to + ".gz", packed(state));
  test::write_bytes(to + ".toml", profile_of(state));
  // As the first test reads them.
  EXPECT_TRUE(unpacked(test::bytes_of(to + ".gz")) == state);
  ASSERT_EQ(load_state(state), "");
  EXPECT_TRUE(save_state() == state) << "hcasim state diff says what is different";
  EXPECT_EQ(test::bytes_of(to + ".toml").rfind("generation = ", 0), 0u);
  EXPECT_NE(test::bytes_of(to + ".toml").find("\n[pcie]\n"), std::string::npos);
}

}  // namespace
}  // namespace hcasim::bare
