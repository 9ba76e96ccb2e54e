// SPDX-License-Identifier: BSD-3-Clause
#include "model/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hcasim {
namespace {

using ::testing::HasSubstr;

class ProfileFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "hcasim-profile-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  bool load(const std::string& text) {
    std::ofstream(folder + "/card.toml") << text;
    return Profile::load("card", {"/nowhere", folder}, profile, err);
  }
  std::string folder, err;
  Profile profile;
};

TEST_F(ProfileFile, WhatItDoesNotNameKeepsItsDefault) {
  ASSERT_TRUE(load("name = \"x\"\n[pcie]\nlanes = 8\n")) << err;
  EXPECT_EQ(profile.name, "x");
  EXPECT_EQ(profile.pcie.lanes, 8u);
  EXPECT_EQ(profile.pcie.generation, Profile().pcie.generation);
  EXPECT_EQ(profile.engine.burst_packets, Profile().engine.burst_packets);
}

TEST_F(ProfileFile, TimesAreWholeCycles) {
  ASSERT_TRUE(load("[core]\nclock_mhz = 400\n[engine]\ndoorbell_ns = 11\ncqe_ns = 1.2\n")) << err;
  EXPECT_EQ(profile.cycle, 2500);
  EXPECT_EQ(profile.engine.doorbell, 10000);
  EXPECT_EQ(profile.engine.cqe, 0);
}

TEST_F(ProfileFile, ItsGenerationIsOneOfTheRows) {
  ASSERT_TRUE(load("generation = \"connectx6\"\n")) << err;
  EXPECT_EQ(profile.generation->device_id, 0x101b);
  ASSERT_TRUE(load("name = \"x\"\n")) << err;
  EXPECT_EQ(profile.generation, &default_generation());
  for (const char* wrong : {"generation = \"connectx3\"\n", "generation = 6\n", "generation = \"\"\n"}) {
    EXPECT_FALSE(load(wrong));
    EXPECT_THAT(err, HasSubstr("card.toml:1: generation: must be one of connectx4, "));
  }
}

TEST_F(ProfileFile, UnknownKeysAreToldWithLineAndWhatIsAllowed) {
  EXPECT_FALSE(load("[engine]\n\ndorbell_ns = 3\n"));
  EXPECT_THAT(err, HasSubstr("card.toml:3: engine.dorbell_ns: unknown"));
  EXPECT_THAT(err, HasSubstr("doorbell_ns"));
  EXPECT_FALSE(load("[core]\n[enigne]\n"));
  EXPECT_THAT(err, HasSubstr("card.toml:2: enigne: unknown"));
  EXPECT_FALSE(load("doorbell_ns = 3\n"));
  EXPECT_THAT(err, HasSubstr("card.toml:1: doorbell_ns: unknown"));
}

TEST_F(ProfileFile, WrongValuesAreToldWithWhatIsAllowed) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"[pcie]\nlanes = 3\n", "card.toml:2: pcie.lanes: must be a whole number from 1 to 16, a power of two"},
      {"[pcie]\ngeneration = 9\n", "card.toml:2: pcie.generation: must be a whole number from 1 to 5"},
      {"[pcie]\ntags = \"many\"\n", "pcie.tags: must be"},
      {"[pcie]\ntags = 1.5\n", "pcie.tags: must be"},
      {"[pcie]\nefficiency = nan\n", "pcie.efficiency: must be a number from 0.05 to 1"},
      {"[pcie]\nread_latency_ns = -1\n", "pcie.read_latency_ns: must be"},
      {"[pcie]\nread_latency_ns = 1e30\n", "pcie.read_latency_ns: must be"},
      {"name = 3\n", "card.toml:1: name: a string"},
      {"pcie = 3\n", "card.toml:1: pcie: unknown"},
  };
  for (const auto& c : cases) {
    EXPECT_FALSE(load(c.text)) << c.text;
    EXPECT_THAT(err, HasSubstr(c.message));
  }
}

TEST_F(ProfileFile, BrokenFilesAreToldWithTheirLine) {
  EXPECT_FALSE(load("[pcie]\nlanes = = 3\n"));
  EXPECT_THAT(err, HasSubstr("card.toml:2: "));
}

TEST_F(ProfileFile, AnUnknownNameIsAnsweredWithThoseThereAre) {
  std::ofstream(folder + "/other.toml") << "";
  EXPECT_FALSE(Profile::load("card", {folder}, profile, err));
  EXPECT_THAT(err, HasSubstr("other"));
  EXPECT_FALSE(Profile::load(folder + "/none.toml", {}, profile, err));
}

// Whatever the text, there is a message, and no assertion of the parser's.
TEST_F(ProfileFile, BrokenTomlIsAMessage) {
  for (const char* text : {"lanes.",
                           "[pcie",
                           "[pcie]]\n",
                           "[[pcie]\n",
                           "a = {",
                           "a = [",
                           "a = 1979-",
                           "a = 0x",
                           "a = \"",
                           "'",
                           "\xff",
                           "=",
                           "[pcie]\nlanes = 8 8\n",
                           "[pcie]\nlanes = \n",
                           "[pcie]\nlanes = +-8\n",
                           "\xef\xbb",
                           "a\0b",
                           "[pcie]\nlanes = 1e\n",
                           "[pcie]\nlanes = 1e99999\n",
                           "[pcie]\nlanes = 99999999999999999999\n",
                           "[pcie]\n[pcie]\n"}) {
    err.clear();
    EXPECT_FALSE(load(text)) << text;
    EXPECT_THAT(err, HasSubstr("card.toml:")) << text;
  }
}

TEST_F(ProfileFile, ParametersAreOverriddenByNameUnderTheSameRules) {
  std::ofstream(folder + "/card.toml") << "[pcie]\nlanes = 8\nread_latency_ns = 100\n";
  ASSERT_TRUE(Profile::load("card", {folder}, profile, err,
                            {"pcie.read_latency_ns=500", "port.rate_gbps=12.5", "core.clock_mhz=400",
                             "engine.doorbell_ns=11", "host.post_ns=11.3", "pcie.read_latency_ns=600"}))
      << err;
  EXPECT_EQ(profile.pcie.lanes, 8u);
  EXPECT_EQ(profile.pcie.read_latency, 600000);  // the last one counts
  EXPECT_EQ(profile.port.rate_gbps, 12.5);
  EXPECT_EQ(profile.engine.doorbell, 10000);  // whole cycles of the clock given
  EXPECT_EQ(profile.host.post, 11300);        // which is not the CPU's
  const struct {
    const char *text, *message;
  } cases[] = {
      {"pcie.lanes=3", "pcie.lanes: must be a whole number from 1 to 16, a power of two (pcie.lanes=3)"},
      {"pcie.lanes=1.0", "pcie.lanes: must be"},
      {"pcie.lanes=", "pcie.lanes: must be"},
      {"pcie.efficiency=much", "pcie.efficiency: must be a number from 0.05 to 1"},
      {"pcie.efficiency=nan", "pcie.efficiency: must be"},
      {"pcie.lane=4", "pcie.lane: unknown; allowed are generation, lanes"},
      {"pci.lanes=4", "pci: unknown; the profile's sections are core, pcie, memory, engine"},
      {"pcie.lanes", "expected SECTION.KEY=VALUE"},
      {"lanes=4", "expected SECTION.KEY=VALUE"},
  };
  for (const auto& c : cases) {
    EXPECT_FALSE(Profile::load("card", {folder}, profile, err, {c.text})) << c.text;
    EXPECT_THAT(err, HasSubstr(c.message));
  }
}

TEST_F(ProfileFile, ValuesThatMeanNothingTogetherAreToldSo) {
  std::ofstream(folder + "/card.toml") << "[memory]\natc = 8\n";
  EXPECT_FALSE(Profile::load("card", {folder}, profile, err));
  EXPECT_THAT(err, HasSubstr("memory.atc: the HCA keeps translations of an IOMMU, and there is none"));
  EXPECT_TRUE(Profile::load("card", {folder}, profile, err, {"memory.iotlb=16"})) << err;
  EXPECT_FALSE(Profile::load("card", {folder}, profile, err, {"memory.iotlb=16", "port.lane_buffer=63"}));
  EXPECT_THAT(err, HasSubstr("port.lane_buffer: must be 0, or at least the 64 bytes of a credit"));
  EXPECT_FALSE(
      Profile::load("card", {folder}, profile, err, {"memory.iotlb=16", "engine.inflight_packets=16"}));
  EXPECT_THAT(err, HasSubstr("engine.inflight_packets: must be at least engine.ack_every"));
  EXPECT_TRUE(Profile::load("card", {folder}, profile, err, {"memory.iotlb=16", "port.lane_buffer=64"}))
      << err;
}

TEST_F(ProfileFile, ParametersHaveNamesAndValues) {
  ASSERT_TRUE(load("[pcie]\nlanes = 4\nread_latency_ns = 321\n[core]\nclock_mhz = 500\n")) << err;
  const auto& names = Profile::names();
  const auto value = [&](const char* name) {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? -1 : profile.value(static_cast<std::size_t>(at - names.begin()));
  };
  EXPECT_EQ(value("pcie.lanes"), 4);
  EXPECT_EQ(value("pcie.read_latency_ns"), 322);
  EXPECT_EQ(value("core.clock_mhz"), 500);
  EXPECT_EQ(value("pcie.efficiency"), Profile().pcie.efficiency);
}

TEST(Profiles, AllOfOursLoad) {
  unsigned n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HCASIM_PROFILE_DIR)) {
    Profile p;
    std::string err;
    EXPECT_TRUE(Profile::load(entry.path().string(), {}, p, err)) << err;
    EXPECT_EQ(p.name, entry.path().stem().string());
    ++n;
  }
  EXPECT_GE(n, 9u);
}

TEST(Profiles, LinkRate) {
  Profile::Pcie pcie;
  pcie.efficiency = 1;
  EXPECT_NEAR(8000 / pcie.ps_per_byte(), 126.0, 0.1);  // Gen3 x16
  pcie.generation = 5;
  EXPECT_NEAR(8000 / pcie.ps_per_byte(), 504.1, 0.1);
}

}  // namespace
}  // namespace hcasim
