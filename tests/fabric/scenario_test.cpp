// SPDX-License-Identifier: GPL-2.0-or-later
// Files: what is wrong is said with file, line and key; nothing in a file ends the program.
#include "fabric/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "fabric/card_check.h"

namespace hcasim::fabric {
namespace {

using ::testing::HasSubstr;

class ScenarioFile : public ::testing::Test {
 protected:
  ScenarioFile() {
    folder_ = (std::filesystem::temp_directory_path() / "hcasim-fabric.XXXXXX").string();
    if (!mkdtemp(folder_.data())) folder_.clear();
  }
  ~ScenarioFile() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text, const char* name = "x.toml") const {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  // "" or what is said.
  std::string said(const std::string& text) const {
    try {
      const Scenario s = read_scenario(write(text));
      build_workload(s.workloads, build_topology(s.topology).cards);
      return "";
    } catch (const ScenarioError& e) {
      return e.what();
    }
  }
  std::string folder_;
};

const char* const kGood =
    "[topology]\nkind = \"star\"\nhosts = 3\n"
    "[workload]\nkind = \"incast\"\nbytes = 1000\n";

TEST_F(ScenarioFile, TheShortestOneIsRead) {
  const Scenario s = read_scenario(write(kGood));
  EXPECT_EQ(s.topology.hosts, 3u);
  ASSERT_EQ(s.workloads.size(), 1u);
  EXPECT_EQ(s.workloads[0].senders, 2u);
  EXPECT_EQ(s.switches.lossless, 0);
}

TEST_F(ScenarioFile, SomeCardsAreNotAsAll) {
  const Scenario s = read_scenario(write(std::string(kGood) +
                                         "[card]\noptions = \"rules=strict\"\nmtu = 1024\n"
                                         "[[cards]]\nwhich = \"2, 0-1\"\noptions = \"trace=t{card}-{card}\"\n"
                                         "[[cards]]\nwhich = \" 1 \"\nprofile = \"connectx5-x8\"\n"));
  EXPECT_EQ(spec_of(s, 0).options, "rules=strict,trace=t0-0");
  EXPECT_EQ(spec_of(s, 2).options, "rules=strict,trace=t2-2");
  EXPECT_EQ(spec_of(s, 1).profile, "connectx5-x8");
  EXPECT_EQ(spec_of(s, 1).options, "rules=strict,trace=t1-1");
  EXPECT_EQ(spec_of(s, 2).profile, s.card.profile);
  EXPECT_EQ(spec_of(s, 1).mtu, 1024u);
}

// Processes that write one file would spoil it.
TEST_F(ScenarioFile, AFileIsOfOneRank) {
  const std::vector<unsigned> ranks = {0, 0, 1};
  const auto checked = [&](const std::string& more) -> std::string {
    try {
      check_files(read_scenario(write(kGood + more)), ranks, 3);
      return "";
    } catch (const ScenarioError& e) {
      return e.what();
    }
  };
  EXPECT_THAT(checked("[card]\noptions = \"rules=strict,trace=t\""), HasSubstr("trace=t: cards 0 and 2 are"));
  EXPECT_EQ(checked("[card]\noptions = \"trace=t{card},capture=c{card}\""), "");
  EXPECT_EQ(checked("[[cards]]\nwhich = \"0-1\"\noptions = \"capture=c\""), "");
  EXPECT_THAT(checked("[[cards]]\nwhich = \"1-2\"\noptions = \"capture=c\""), HasSubstr("put {card}"));
}

TEST_F(ScenarioFile, WhatIsWrongIsSaidWithItsLine) {
  const struct {
    std::string text;
    const char *line, *says;
  } cases[] = {
      {"", ":1: ", "topology: is missing"},
      {"[topology]\nkind = \"ring\"", ":2: ", "[topology] kind: must be one of star, leaf-spine"},
      {"[topology]\nkind = 3", ":2: ", "must be one of"},
      {"[topology]\nhosts = 3", ":1: ", "[topology] kind: is missing"},
      {"[topology]\nkind = \"star\"", ":1: ", "[topology] hosts: is missing; a whole number from 2"},
      {"[topology]\nkind = \"star\"\nhost = 3",
       ":3: ", "[topology] host: there is no such key here; hosts is missing; a whole number from 2"},
      {"[topology]\nkidn = \"star\"",
       ":2: ", "kidn: there is no such key here; kind is missing; allowed are star"},
      {"[topology]\nkind = \"star\"\nghosts = 3",
       ":3: ", "ghosts: there is no such key here; hosts is missing"},
      {"[topology]\nkind = \"star\"\nlost = 3", ":1: ", "[topology] hosts: is missing"},
      {"[topology]\nkind = \"star\"\nhosts = -1", ":3: ", "a whole number from 2 to 512"},
      {"[topology]\nkind = \"star\"\nhosts = 1e9", ":3: ", "a whole number"},
      {"[topology]\nkind = \"fat-tree\"\nk = 5", ":3: ", "must be even"},
      {"[topology]\nkind = \"leaf-spine\"\nleaves = 512\nhosts = 256\nspines = 1",
       ":2: ", "these are 131072 cards"},
      {"[topology]\nkind = \"star\"\nhosts = 3\ncolour = 1",
       ":4: ", "colour: there is no such key here; allowed are hosts, kind"},
      {"[topology]\nkind = \"star\"\nhosts = 3", ":1: ", "workload: is missing"},
      {"topology = 3", ":1: ", "must be a table, [topology]"},
      {"[topology", ":1: ", ""},
      {std::string(kGood) + "peers = 1", ":7: ", "peers: there is no such key"},
      {std::string(kGood) + "senders = 3", ":7: ", "from 1 to 2"},
      {std::string(kGood) + "receiver = 3", ":7: ", "from 0 to 2"},
      {std::string(kGood) + "start_us = nan", ":7: ", "a number from 0"},
      {std::string(kGood) + "[links]\nhost_ns = 0", ":8: ", "a number from 1 to"},
      {std::string(kGood) + "[[cards]]\noptions = \"\"",
       ":7: ", "[[cards]] which: numbers of cards, 0 to 2,"},
      {std::string(kGood) + "[[cards]]\nwhich = \"3\"", ":8: ", "numbers of cards"},
      {std::string(kGood) + "[[cards]]\nwhich = \"2-1\"", ":8: ", "numbers of cards"},
      {std::string(kGood) + "[[cards]]\nwhich = \"0,\"", ":8: ", "numbers of cards"},
      {std::string(kGood) + "[[cards]]\nwhich = \"0 1\"", ":8: ", "numbers of cards"},
      {std::string(kGood) + "[[cards]]\nwhich = \"99999999999999999999\"", ":8: ", "numbers of cards"},
      {std::string(kGood) + "[[cards]]\nwhich = 1", ":8: ", "must be a text"},
      {std::string(kGood) + "[[cards]]\nwhich = \"1\"\noptions = \"mac=0\"", ":9: ", "the fabric's business"},
      {std::string(kGood) + "[[cards]]\nwhich = \"1\"\nmtu = 256", ":9: ", "mtu: there is no such key"},
      {std::string(kGood) + "[links]\nfabric_gbps = 0.001", ":8: ", "a number from 1 to"},
      {std::string(kGood) + "[switch]\npfc = [3, 8]", ":8: ", "a list, each a whole number from 0 to 7"},
      {std::string(kGood) + "[switch]\npfc = 3", ":8: ", "must be a list"},
      {std::string(kGood) + "[switch]\nlatency_ns = 0", ":8: ", "a number from 1"},
      {std::string(kGood) + "[switch]\nlatency_ns = inf", ":8: ", "a number from 1"},
      {std::string(kGood) + "[switch]\ncut_through = 1", ":8: ", "true or false"},
      {std::string(kGood) + "[switch]\necn_kmax_kib = 3", ":8: ", "must not be less than ecn_kmin_kib"},
      {std::string(kGood) + "[switch]\npfc_xoff_kib = 3", "", "must not be more than pfc_xoff_kib"},
      {std::string(kGood) + "[card]\nmtu = 3000", ":8: ", "must be 256, 512"},
      {std::string(kGood) + "[card]\noptions = \"wire=host\"", ":8: ", "is the fabric's business"},
      {std::string(kGood) + "[card]\nprofile = \"default,wire=shm:x\"", ":8: ", "without a comma"},
      {std::string(kGood) + "[[cards]]\nwhich = \"1\"\nprofile = \"default,wire=shm:x\"",
       ":9: ", "without a comma"},
      {std::string(kGood) + "[run]\nuntil_us = 0", ":8: ", "a number from 1"},
      {std::string(kGood) + "[run]\nuntil_us = 1e8\nsample_us = 0.1", ":9: ", "more than 10000000 samples"},
      {"[topology]\nkind = \"star\"\nhosts = 3\n[workload]\nkind = \"trace\"", ":4: ", "file: is missing"},
      {"[topology]\nkind = \"star\"\nhosts = 3\n[workload]\nkind = \"trace\"\nfile = \"none\"",
       ":6: ", "cannot read"},
      {"[topology]\nkind = \"star\"\nhosts = 3\n[workload]\nkind = \"trace\"\nfile = \".\"",
       ":6: ", "cannot read"},
      {"[topology]\nkind = \"star\"\nhosts = 3\n[workload]\nkind = \"incast\"\nbytes = 0",
       ":6: ", "a whole number from 1"},
      {"[topology]\nkind = \"star\"\nhosts = 3\n[workload]\nkind = \"ring-allreduce\"\nbytes = 2",
       ":6: ", "must be 3 at least"},
      {"[topology]\nkind = \"star\"\nhosts = 500\n[workload]\nkind = \"all-to-all\"\nbytes = 2\nrounds = "
       "1000000",
       "", "more than 4194304 messages"},
  };
  for (const auto& c : cases) {
    const std::string text = said(c.text);
    EXPECT_THAT(text, HasSubstr(c.says)) << c.text;
    EXPECT_THAT(text, HasSubstr(*c.line ? std::string("x.toml") + c.line : "")) << c.text;
  }
}

// Profiles and options are the card's own: what it says against them comes with the place in the file.
TEST_F(ScenarioFile, CardsThatCannotBeMadeAreRefusedWithTheirLine) {
  const auto checked = [&](const std::string& more) -> std::string {
    try {
      check_cards(read_scenario(write(kGood + more)), 3);
      return "";
    } catch (const ScenarioError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(checked(""), "");
  EXPECT_THAT(checked("[card]\nmtu = 1024\nprofile = \"conectx5\""),
              HasSubstr("x.toml:9: [card] profile: card 0: profile conectx5: no such file"));
  EXPECT_THAT(checked("[card]\noptions = \"drp=0.1\""),
              HasSubstr("x.toml:8: [card] options: card 0: unknown option drp; there are"));
  EXPECT_THAT(checked("[[cards]]\nwhich = \"1-2\"\noptions = \"faults=none.toml\""),
              HasSubstr("x.toml:9: [[cards]] options: card 1: faults=none.toml"));
  EXPECT_THAT(checked("[[cards]]\nwhich = \"0-1\"\noptions = \"drop=0.1\"\n"
                      "[[cards]]\nwhich = \"2\"\nprofile = \"none\""),
              HasSubstr("x.toml:12: [[cards]] profile: card 2: profile none"));
  // What [card] lacks a card may have of its own.
  const std::string atc = "[card]\noptions = \"memory.atc=64\"\n";
  EXPECT_THAT(checked(atc), HasSubstr("x.toml:8: [card] options: card 0: memory.atc"));
  EXPECT_EQ(checked(atc + "[[cards]]\nwhich = \"0-2\"\noptions = \"memory.iotlb=64\""), "");
  EXPECT_THAT(checked(atc + "[[cards]]\nwhich = \"0-2\"\noptions = \"memory.iotlb=64,drp=1\""),
              HasSubstr("x.toml:11: [[cards]] options: card 0: unknown option drp"));
  // Nothing is written by a check.
  EXPECT_EQ(checked("[card]\noptions = \"trace=" + folder_ + "/t,capture=" + folder_ + "/c\""), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/t") || std::filesystem::exists(folder_ + "/c"));
}

// What waits for somebody who writes into it is no trace.
TEST_F(ScenarioFile, ANamedPipeIsNoTrace) {
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(said("[topology]\nkind = \"star\"\nhosts = 3\n[workload]\nkind = \"trace\"\nfile = \"pipe\""),
              HasSubstr("cannot read"));
}

TEST_F(ScenarioFile, TracesAreReadLineByLine) {
  const std::string head =
      "[topology]\nkind = \"star\"\nhosts = 3\n[workload]\nkind = \"trace\"\nfile = \"t.csv\"";
  const auto with = [&](const std::string& trace) {
    write(trace, "t.csv");
    return said(head);
  };
  EXPECT_EQ(with("# nothing\n\n0, 1, 2, 1000\r\n2.5 2 0 7 # more\n"), "");
  EXPECT_THAT(with("0,1,2,10\n0,1,2"), HasSubstr("t.csv:2: a line is: time"));
  EXPECT_THAT(with("0,1,3,10"), HasSubstr("there is no card 3; cards are 0 to 2"));
  EXPECT_THAT(with("0,1,1,10"), HasSubstr("are the same"));
  EXPECT_THAT(with("0,1,2,0"), HasSubstr("1 to 1073741824 bytes"));
  EXPECT_THAT(with("-1,1,2,1"), HasSubstr("the time must be"));
  EXPECT_THAT(with("nan,1,2,1"), HasSubstr("t.csv:1: "));
  EXPECT_THAT(with("0,1,2,99999999999999999999999"), HasSubstr("t.csv:1: "));
  EXPECT_THAT(with(std::string(100000, '0')), HasSubstr("too long"));
  EXPECT_THAT(with("# nothing"), HasSubstr("no message"));
}

TEST_F(ScenarioFile, ExamplesAreRight) {
  unsigned count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES)) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_NO_THROW(read_scenario(entry.path().string())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 4u);
}

// Bytes of an example changed, taken out, doubled: it is read or refused, and nothing else.
TEST_F(ScenarioFile, DamagedOnesAreReadOrRefused) {
  std::mt19937 random(1);
  unsigned refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES)) {
    if (entry.path().extension() != ".toml") continue;
    std::ostringstream all;
    all << std::ifstream(entry.path()).rdbuf();
    for (int i = 0; i < 150; ++i) {
      std::string text = all.str();
      for (unsigned n = random() % 3 + 1; n-- > 0;) {
        const std::size_t at = random() % text.size();
        switch (random() % 3) {
          case 0:
            text[at] = static_cast<char>(random());
            break;
          case 1:
            text.erase(at, random() % 20);
            break;
          default:
            text.insert(at, text.substr(random() % text.size(), random() % 20));
            break;
        }
      }
      try {
        read_scenario(write(text));
      } catch (const ScenarioError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace hcasim::fabric
