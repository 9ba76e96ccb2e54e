// SPDX-License-Identifier: BSD-3-Clause
// The tables that everything else follows from.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "firmware-stub/objects/table.h"
#include "firmware-stub/opcodes.h"
#include "firmware-stub/syndromes.h"
#include "model/state/state.h"
#include "prm/info.h"
#include "prm/psp.h"
#include "prm/user_commands.h"

namespace hcasim::fw {
namespace {

TEST(OpcodeTable, EachOpcodeOnceWithItsNameAndAHandler) {
  std::set<std::uint16_t> seen;
  for (const Opcode& o : all_opcodes()) {
    EXPECT_TRUE(seen.insert(o.opcode).second) << o.name << " stands twice";
    const std::string name = prm::opcode_name(o.opcode);
    // What the kernel's header does not know, or not before 6.18.
    const bool unknown = prm::find_opcode(o.opcode) == nullptr;
    if (!unknown || (o.opcode != kRts2SqdQp && o.opcode != prm::psp::kOpGenSpi &&
                     o.opcode != prm::psp::kOpRotateKey && o.opcode != prm::kOpAccessRegisterUser)) {
      EXPECT_TRUE(name == o.name || "_" + name == o.name) << name << " is called " << o.name;
    }
    EXPECT_NE(o.handler, nullptr);
    EXPECT_GE(o.min_in, 8u) << o.name;
    EXPECT_GE(o.min_out, 8u) << o.name;
    EXPECT_NE(o.states, 0) << o.name;
    EXPECT_EQ(find_opcode(o.opcode), &o);
  }
  EXPECT_EQ(find_opcode(0), nullptr);
  EXPECT_EQ(find_opcode(0xffff), nullptr);
}

TEST(NumberPool, AFunctionMayBeginFurtherOn) {
  NumberPool pool(10, 5, 3);
  for (const std::uint32_t n : {13u, 14u, 10u}) {
    EXPECT_FALSE(pool.knows(n));
    EXPECT_EQ(pool.take(), n);
    EXPECT_TRUE(pool.knows(n));
  }
  EXPECT_FALSE(pool.knows(9));
  EXPECT_FALSE(pool.knows(15));
  pool.give(14);
  EXPECT_TRUE(pool.all_apart([](std::uint32_t n) { return n == 14; }));
  EXPECT_FALSE(pool.all_apart([](std::uint32_t n) { return n == 13; }));
  EXPECT_EQ(pool.take(), 11u);
  EXPECT_EQ(pool.take(), 12u);
  EXPECT_EQ(pool.take(), 14u) << "the one that was given back";
  EXPECT_EQ(pool.take(), 0u);
}

TEST(OpcodeTable, OnlyEnableBeforeEnable) {
  for (const Opcode& o : all_opcodes())
    EXPECT_EQ(o.allowed(State::kOff), o.opcode == prm::op::ENABLE_HCA) << o.name;
}

// What concerns the whole card or all contexts is not a user context's to change.
TEST(OpcodeTable, TheDriverKeepsWhatConcernsTheWholeCard) {
  const std::set<std::string> drivers = {"INIT_HCA",
                                         "TEARDOWN_HCA",
                                         "ENABLE_HCA",
                                         "DISABLE_HCA",
                                         "QUERY_PAGES",
                                         "MANAGE_PAGES",
                                         "SET_HCA_CAP",
                                         "SET_ISSI",
                                         "SET_DRIVER_VERSION",
                                         "PAGE_FAULT_RESUME",
                                         "SUSPEND_VHCA",
                                         "RESUME_VHCA",
                                         "QUERY_VHCA_MIGRATION_STATE",
                                         "SAVE_VHCA_STATE",
                                         "LOAD_VHCA_STATE",
                                         "CREATE_EQ",
                                         "DESTROY_EQ",
                                         "QUERY_EQ",
                                         "MAD_IFC",
                                         "MODIFY_HCA_VPORT_CONTEXT",
                                         "MODIFY_VPORT_STATE",
                                         "MODIFY_NIC_VPORT_CONTEXT",
                                         "MODIFY_ESW_VPORT_CONTEXT",
                                         "SET_L2_TABLE_ENTRY",
                                         "QUERY_L2_TABLE_ENTRY",
                                         "DELETE_L2_TABLE_ENTRY",
                                         "SET_ROCE_ADDRESS",
                                         "ACCESS_REG",
                                         "SET_FLOW_TABLE_ROOT",
                                         "MODIFY_CONG_STATUS",
                                         "MODIFY_CONG_PARAMS",
                                         "CREATE_UCTX",
                                         "DESTROY_UCTX",
                                         "ALLOC_MEMIC",
                                         "DEALLOC_MEMIC",
                                         "MODIFY_MEMIC",
                                         "CREATE_SCHEDULING_ELEMENT",
                                         "DESTROY_SCHEDULING_ELEMENT",
                                         "QUERY_SCHEDULING_ELEMENT",
                                         "MODIFY_SCHEDULING_ELEMENT",
                                         "ADD_VXLAN_UDP_DPORT",
                                         "DELETE_VXLAN_UDP_DPORT",
                                         "ALLOC_SF",
                                         "DEALLOC_SF",
                                         "QUERY_VHCA_STATE",
                                         "MODIFY_VHCA_STATE",
                                         "CREATE_LAG",
                                         "MODIFY_LAG",
                                         "DESTROY_LAG",
                                         "CREATE_VPORT_LAG",
                                         "DESTROY_VPORT_LAG",
                                         "PSP_ROTATE_KEY",
                                         "CONFIG_INT_MODERATION"};
  std::set<std::string> seen;
  for (const Opcode& o : all_opcodes()) {
    if (o.users.contexts()) continue;
    seen.insert(o.name);
    EXPECT_TRUE(o.users.named().empty() && o.users.check() == nullptr) << o.name << " is checked for nobody";
  }
  EXPECT_EQ(seen, drivers);
}

// A context's command that changes or destroys an object must say whose object it is.
TEST(OpcodeTable, ContextsCommandsOnObjectsNameThem) {
  for (const Opcode& o : all_opcodes()) {
    const std::string name = o.name;
    const bool acts = name.rfind("DESTROY_", 0) == 0 || name.rfind("DEALLOC_", 0) == 0 ||
                      name.rfind("MODIFY_", 0) == 0 || name.find("_QP") == name.size() - 3 ||
                      name.rfind("ARM_", 0) == 0 || name.rfind("DETACH_", 0) == 0;
    if (!o.users.contexts() || !acts) continue;
    EXPECT_TRUE(!o.users.named().empty() || o.users.check() != nullptr) << name;
    const bool creates = name.rfind("CREATE_", 0) == 0;
    for (const Named& n : o.users.named()) EXPECT_NE(n.number, nullptr) << name;
    if (!creates && o.users.check() == nullptr) {
      EXPECT_FALSE(o.users.named().front().use) << name;
    }
  }
}

TEST(Syndromes, EachNumberOnceWithAText) {
  std::set<std::uint32_t> seen;
#define HCASIM_X(name, number, status, rule, text)          \
  EXPECT_TRUE(seen.insert(number).second) << #name;         \
  EXPECT_EQ(text_of(Syndrome::k##name), std::string(text)); \
  EXPECT_EQ(status_of(Syndrome::k##name) == prm::CmdStatus::kOk, Syndrome::k##name == Syndrome::kOk) << #name;
  HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
  EXPECT_EQ(static_cast<int>(status_of(static_cast<Syndrome>(0x123456))),
            static_cast<int>(prm::CmdStatus::kIntErr));
}

struct Thing {
  std::uint32_t refs = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, refs);
  }
};

TEST(Table, NumbersRestBeforeTheyComeBack) {
  Table<Thing> t(5, 3000);
  std::uint32_t a = 0, b = 0;
  ASSERT_NE(t.create(a), nullptr);
  EXPECT_EQ(a, 5u);
  t.destroy(a);
  EXPECT_EQ(t.find(a), nullptr);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(t.create(b), nullptr);
    EXPECT_NE(b, a);
    t.destroy(b);
  }
  EXPECT_EQ(t.count(), 0u);
  EXPECT_EQ(t.generation(a), 1u);
}

TEST(Table, RunsOutAndServesOn) {
  Table<Thing> t(1, 4);
  std::uint32_t n = 0;
  for (int i = 0; i < 4; ++i) ASSERT_NE(t.create(n), nullptr);
  EXPECT_TRUE(t.full());
  EXPECT_EQ(t.create(n), nullptr);
  t.destroy(2);
  t.destroy(2);  // twice frees once
  EXPECT_EQ(t.count(), 3u);
  ASSERT_NE(t.create(n), nullptr);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(t.generation(2), 2u);
  EXPECT_EQ(t.find(0), nullptr);
  reset_state(t);
  EXPECT_EQ(t.count(), 0u);
  ASSERT_NE(t.create(n), nullptr);
}

}  // namespace
}  // namespace hcasim::fw
