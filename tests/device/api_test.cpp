// SPDX-License-Identifier: BSD-3-Clause
// The C API itself: options and what is said of wrong ones, time, re-entry, counters, faults, the end of an
// HCA.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "card/api/hca_api.h"
#include "rule_check.h"

namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Host {
  static int read(void* self, std::uint64_t, void* dst, std::size_t len) {
    auto* h = static_cast<Host*>(self);
    ++h->dmas;
    if (h->on_dma) h->on_dma();
    std::memset(dst, 0, len);
    if (h->command && len == 64) {  // a command queue entry: QUERY_ISSI
      auto* entry = static_cast<std::uint8_t*>(dst);
      entry[0x00] = 7;
      entry[0x07] = entry[0x3b] = 16;
      entry[0x10] = 0x01;
      entry[0x11] = 0x0a;
      entry[0x3f] = 1;
      entry[0x3d] = std::accumulate(entry, entry + 64, std::uint8_t{0xff}, std::bit_xor<std::uint8_t>());
    }
    return 0;
  }
  static int write(void* self, std::uint64_t, const void*, std::size_t) {
    ++static_cast<Host*>(self)->dmas;
    return 0;
  }
  static void msix(void*, unsigned) {}
  static void log(void* self, int, const char* line) {
    static_cast<Host*>(self)->lines += std::string(line) + "\n";
  }

  hca_t* create(const std::string& options) {
    char text[1024] = "";
    hca_host_ops ops{};
    ops.dma_read = read;
    ops.dma_write = write;
    ops.msix = msix;
    ops.log = log;
    hca_t* made = hca_create(options.c_str(), &ops, this, text, sizeof text);
    err = text;
    return made;
  }
  std::string err, lines;
  unsigned dmas = 0;
  bool command = false;
  std::function<void()> on_dma;
};

// Before time starts: in the order of this file.
class ApiOptions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (hca_sim_started()) GTEST_SKIP() << "time has started";
  }
  Host host;
};

TEST_F(ApiOptions, WrongOnesAreToldWithWhatIsAllowed) {
  const struct {
    const char *options, *message;
  } cases[] = {
      {"link=token-ring", "link=token-ring: allowed: eth, ib"},
      {"bf=maybe", "bf=maybe: allowed: on, off"},
      {"sm", "\"sm\": expected key=value"},
      {"=3", "expected key=value"},
      {"node_guid=xyz", "node_guid=xyz: allowed: 1 to 16 hexadecimal digits"},
      {"node_guid=00112233445566778", "node_guid"},
      {"snapshot_every=10",
       "snapshot_every=10: allowed: 0, or a time from 1us on with its unit, such as 500ms"},
      {"snapshot_every=999ns", "snapshot_every=999ns: allowed"},
      {"snapshot_every=", "snapshot_every=: allowed"},
      {"snapshot_every=10s", "there is none: give record=FILE to the first HCA"},
      {"trace_filter=ways",
       "qp=, point=, kind= and values parted by '+', detail, path, all; 'ways': expected"},
      {"trace_filter=qp=5-3", "; qp=5-3: a QPN or a range FROM-TO, 0 to 0xffffff"},
      {"wire=tcp:here:0", "shm:NAME, host; after tcp: come HOST:PORT, with a port of 1 to 65535"},
      {"cable=a b", "cable=a b: allowed: 1 to 64 letters, digits, '_', '-', '.'"},
      {"lid=0xc000", "lid=0xc000: allowed: 1 to 0xbfff"},
      {"lid=-1", "lid=-1: allowed"},
      {"drop=1.5", "drop=1.5: allowed: 0 to 1"},
      {"drop=nan", "drop=nan: allowed: 0 to 1"},
      {"name=", "name=: allowed"},
      {"name=a b", "name=a b: allowed"},
      {"colour=red", "unknown option colour; there are name, link, profile, trace"},
      {"profile=none-such",
       "profile none-such: no such file; profiles are connectx4-edr, connectx5-100g-roce, connectx5-100gbe, "
       "connectx5-edr, connectx5-x8, connectx6-hdr100, connectx6-hdr200, connectx7-ndr400, default"},
      {"pcie.lanes=3", "pcie.lanes: must be a whole number from 1 to 16, a power of two (pcie.lanes=3)"},
      {"pcie.lane=4", "pcie.lane: unknown; allowed are generation, lanes"},
      {"generation=connectx3", "generation=connectx3: allowed: connectx4, connectx4lx, connectx5, "},
      {"link=ib,generation=connectx6dx", "link=ib: ConnectX-6 Dx has Ethernet ports only (profile default)"},
      {"sfs=65", "sfs=65: allowed: 0 to 64"},
      {"link=ib,sfs=1", "sfs=1: sub-functions are for link=eth"},
      {"generation=connectx4,sfs=2", "sfs=2: sub-functions need switchdev mode, which ConnectX-4 has not"},
      {"trace=/no/such/folder/t", "trace=/no/such/folder/t: "},
      {"trace=/tmp/z,capture=/tmp/./z", "trace= and capture= both name /tmp/z: give each a file of its own"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(host.create(c.options), nullptr) << c.options;
    EXPECT_THAT(host.err, HasSubstr(c.message));
  }
}

TEST_F(ApiOptions, AProfileOfOnesOwnIsFoundAndItsMistakesAreTold) {
  const std::string path = std::filesystem::temp_directory_path() / "hcasim-api-test.toml";
  std::ofstream(path) << "[pcie]\nlanes = 5\n";
  EXPECT_EQ(host.create("profile=" + path), nullptr);
  EXPECT_THAT(host.err, HasSubstr("hcasim-api-test.toml:2: pcie.lanes: must be a whole number from 1 to 16"));
  std::filesystem::remove(path);
}

TEST_F(ApiOptions, CallbacksMustBeThere) {
  char err[100] = "";
  EXPECT_EQ(hca_create("", nullptr, nullptr, err, sizeof err), nullptr);
  const hca_host_ops ops{};
  EXPECT_EQ(hca_create("", &ops, nullptr, err, sizeof err), nullptr);
  EXPECT_THAT(err, HasSubstr("dma_read"));
  EXPECT_EQ(hca_create("", &ops, nullptr, nullptr, 0), nullptr);
}

TEST_F(ApiOptions, TheHelpNamesThemAll) {
  for (const char* key : {"name", "link", "profile", "trace", "bf", "sm", "lid", "node_guid", "generation",
                          "device_id", "page_requests", "batch_window_ns", "drop", "duplicate", "seed"}) {
    EXPECT_THAT(std::string("\n") + hca_option_help(), HasSubstr(std::string("\n") + key + " "));
  }
  for (const char* key : {"none", "drop", "fw_syndrome", "fw_fatal", "link", "model_fault"}) {
    EXPECT_THAT(std::string("\n") + hca_fault_help(), HasSubstr(std::string("\n") + key + " "));
  }
}

// As when a wire finds no descriptor left.
TEST_F(ApiOptions, OneThatCouldNotBeMadeIsNotCalledFor) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit none = usual;
  const int free = dup(STDERR_FILENO);
  close(free);
  none.rlim_cur = static_cast<rlim_t>(free) + 1;  // the profile's file, and then too few for a wire
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Host gone;
  EXPECT_EQ(gone.create("name=gone,card=gone,node_guid=0002c90300abcdee,wire=unix:/tmp/hcasim-none"),
            nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_THAT(gone.err, HasSubstr("open files"));
  const std::string said = gone.lines;
  Host there;
  hca_t* lonely = there.create("name=there,card=there");
  ASSERT_NE(lonely, nullptr) << there.err;
  EXPECT_EQ(hca_sim_start(0), -1);
  EXPECT_EQ(gone.lines, said);
  EXPECT_THAT(there.lines, HasSubstr("there is no second HCA of that card"));
  hca_destroy(lonely);
  for (int port = 0; port < 2; ++port) {
    hca_t* h = host.create("card=gone");
    ASSERT_NE(h, nullptr) << host.err;
    if (port == 1)
      hca_destroy(h);
    else
      lonely = h;
  }
  hca_destroy(lonely);
}

TEST_F(ApiOptions, BeforeTimeStartsNothingAnswers) {
  hca_t* h = host.create("name=early");
  ASSERT_NE(h, nullptr) << host.err;
  EXPECT_EQ(hca_mmio_read(h, 0, 4), 0xffffffffu);
  hca_mmio_write(h, 0x18, 1, 4);
  hca_reset(h);
  EXPECT_EQ(hca_sim_advance(1000, 1000), HCA_NEVER);
  hca_destroy(h);
  EXPECT_EQ(host.dmas, 0u);
}

// With two HCAs and time running; starts at a time that is not 0.
class ApiRunning : public ::testing::Test {
 protected:
  struct World {
    Host host[2];
    hca_t* hca[2];
    std::int64_t now = 5'000'000'000;
  };
  static World& world() {
    static auto* made = [] {
      auto* w = new World;
      w->hca[0] = w->host[0].create("node_guid=0002:c903:00ab:cdef,name=first,seed=0x10");
      w->hca[1] = w->host[1].create("vfs=1,sfs=2");
      EXPECT_NE(w->hca[0], nullptr) << w->host[0].err;
      EXPECT_NE(w->hca[1], nullptr) << w->host[1].err;
      EXPECT_EQ(hca_sim_start(w->now), 0);
      return w;
    }();
    return *made;
  }
  // The command queue at bus address 0x10000, a command in it, its doorbell rung.
  void ring_command_doorbell() {
    host.command = true;
    hcasim::bare::breaks({"cmd-output-short"});  // there is no mailbox for it
    hca_mmio_write(hca, 0x10, 0, 4);
    hca_mmio_write(hca, 0x14, __builtin_bswap32(0x10000), 4);
    hca_mmio_write(hca, 0x18, __builtin_bswap32(1), 4);
  }
  World& w = world();
  Host& host = w.host[0];
  hca_t* hca = w.hca[0];
};

TEST_F(ApiRunning, TimeIsTheCallers) {
  EXPECT_EQ(hca_sim_time(), w.now);
  hca_sim_advance(w.now += 123456, 0);
  EXPECT_EQ(hca_sim_time(), w.now);
  hca_sim_advance(w.now - 1000, 0);  // it does not go back
  EXPECT_EQ(hca_sim_time(), w.now);
}

TEST_F(ApiRunning, NoHcaIsAddedFromWithinACallback) {
  Host late;
  unsigned tries = 0;
  host.on_dma = [&] {
    ++tries;
    EXPECT_EQ(late.create(""), nullptr);
    EXPECT_THAT(late.err, HasSubstr("an HCA is in the midst of a call"));
  };
  ring_command_doorbell();
  hca_sim_advance(w.now += 1'000'000, 0);
  host.on_dma = nullptr;
  EXPECT_GT(tries, 0u);
}

TEST_F(ApiRunning, RunsAheadFromEventToEventOnly) {
  ring_command_doorbell();
  const std::int64_t next = hca_sim_advance(w.now, 0);
  ASSERT_NE(next, HCA_NEVER);
  EXPECT_GE(next, w.now);
  const unsigned before = host.dmas;
  const std::int64_t after = hca_sim_advance(w.now, 50'000);
  EXPECT_GT(host.dmas, before);
  EXPECT_GT(after, w.now + 50'000);
  EXPECT_LE(hca_sim_time(), w.now + 50'000);
  w.now += 100'000;
  hca_sim_advance(w.now, 0);
}

TEST_F(ApiRunning, FromACallbackNothingIsRun) {
  std::int64_t inner = 0;
  host.on_dma = [&] {
    inner = hca_sim_advance(w.now + 1'000'000, 0);
    EXPECT_NE(hca_mmio_read(hca, 0, 4), 0xffffffffu);  // but registers answer
    hca_mmio_write(w.hca[1], 0x3000, 7, 8);
  };
  ring_command_doorbell();
  hca_sim_advance(w.now += 50'000, 0);
  host.on_dma = nullptr;
  EXPECT_EQ(inner, -1);
  EXPECT_EQ(hca_sim_time(), w.now);
}

TEST_F(ApiRunning, RegistersInEachSize) {
  hcasim::bare::breaks({"bar-range"});
  const std::uint64_t word = hca_mmio_read(hca, 4, 4);
  EXPECT_EQ(hca_mmio_read(hca, 4, 8) & 0xffffffff, word);
  EXPECT_EQ(hca_mmio_read(hca, 5, 1), word >> 8 & 0xff);
  EXPECT_EQ(hca_mmio_read(hca, 4, 2), word & 0xffff);
  EXPECT_EQ(hca_mmio_read(hca, HCA_BAR0_SIZE, 4), 0xffffffffu);
  EXPECT_EQ(hca_mmio_read(nullptr, 0, 4), 0xffffffffu);
  hca_mmio_write(hca, 0, 0, 64);
  hca_mmio_write_burst(hca, 0x3800, "x", 3);
  hca_mmio_write_burst(hca, 0x3800, nullptr, 64);
}

TEST_F(ApiRunning, SubFunctionsStandBehindThoseOfTheBus) {
  hcasim::bare::breaks({"bar-range"});
  hca_t* card = w.hca[1];
  ASSERT_EQ(hca_functions(card), 2u);
  ASSERT_EQ(hca_sub_functions(card), 2u);
  EXPECT_EQ(hca_sub_functions(hca), 0u);
  constexpr std::uint64_t kInitializing = 0x1fc;
  for (const unsigned f : {2u, 3u}) {
    EXPECT_EQ(hca_function_read(card, f, 0, 4), hca_function_read(card, 0, 0, 4));  // firmware's version
    EXPECT_EQ(hca_function_read(card, f, kInitializing, 1) & 0x80, 0x80u) << "nobody has made it";
    EXPECT_EQ(hca_function_read(card, f, HCA_SF_WINDOW_SIZE, 4), 0xffffffffu);
  }
  EXPECT_EQ(hca_function_read(card, 4, 0, 4), 0xffffffffu);
  const hca_host_ops none{};
  EXPECT_EQ(hca_attach_function(card, 2, &none, nullptr), -1) << "it has no place on the bus";
  EXPECT_EQ(hca_attach_function(card, 1, nullptr, nullptr), 0);
  hca_function_reset(card, 2);
}

TEST_F(ApiRunning, CountersAndStats) {
  const unsigned n = hca_counter_count(hca);
  ASSERT_GT(n, 20u);
  EXPECT_EQ(hca_counter_count(w.hca[1]), n);
  for (unsigned i = 0; i < n; ++i) EXPECT_STREQ(hca_counter_name(hca, i), hca_counter_name(w.hca[1], i));
  EXPECT_EQ(hca_counter_name(hca, n), nullptr);
  EXPECT_EQ(hca_counter_value(hca, n), 0u);
  const auto stats = nlohmann::json::parse(hca_stats_json(hca));
  EXPECT_EQ(stats["name"], "first");
  EXPECT_EQ(stats["profile"], "default");
  EXPECT_TRUE(stats["counters"].contains("wqes"));
  EXPECT_EQ(stats["objects"]["qps"], 0);
}

TEST_F(ApiRunning, TheProfilesPcieLink) {
  const hca_pcie_link link = hca_get_pcie_link(hca);
  EXPECT_EQ(link.generation, 3u);
  EXPECT_EQ(link.lanes, 16u);
  EXPECT_EQ(hca_is_ethernet(hca), 1);
}

TEST_F(ApiRunning, TheProfilesParameters) {
  const unsigned n = hca_parameter_count();
  std::map<std::string, double> values;
  for (unsigned i = 0; i < n; ++i) values[hca_parameter_name(i)] = hca_parameter_value(hca, i);
  EXPECT_EQ(values.size(), n);
  EXPECT_EQ(values.at("pcie.generation"), 3);
  EXPECT_EQ(values.at("pcie.lanes"), 16);
  EXPECT_EQ(hca_parameter_name(n), nullptr);
  EXPECT_EQ(hca_parameter_value(hca, n), 0);
  EXPECT_EQ(hca_parameter_value(nullptr, 0), 0);
}

TEST_F(ApiRunning, WrongFaultsChangeNothing) {
  char err[512] = "";
  EXPECT_NE(hca_inject(hca, "drop=0.5,link=sideways", err, sizeof err), 0);
  EXPECT_STREQ(err, "link=sideways: allowed: up, down");
  EXPECT_NE(hca_inject(hca, "", err, sizeof err), 0);
  EXPECT_NE(hca_inject(hca, nullptr, err, sizeof err), 0);
  EXPECT_NE(hca_inject(hca, "smoke=1", err, sizeof err), 0);
  EXPECT_THAT(err, HasSubstr("unknown fault smoke; there are none, fault=KIND, drop"));
  EXPECT_NE(hca_inject(nullptr, "drop=0", err, sizeof err), 0);
  EXPECT_EQ(hca_inject(hca, "dup=0.1,fw_syndrome=0", err, sizeof err), 0);
  EXPECT_EQ(hca_inject(hca, "none", nullptr, 0), 0);
}

TEST_F(ApiRunning, AFaultOfTheModelShowsInHealthAndAResetEndsIt) {
  ASSERT_EQ(hca_inject(hca, "model_fault=1", nullptr, 0), 0);
  EXPECT_THAT(host.lines, HasSubstr("fault in the model"));
  hca_sim_advance(w.now += 1'000'000, 0);
  EXPECT_NE(hca_mmio_read(hca, 0x23d, 1), 0u);  // health.synd
  hca_reset(hca);
  EXPECT_EQ(hca_mmio_read(hca, 0x23d, 1), 0u);
  hca_sim_advance(w.now += 1'000'000, 0);
}

TEST_F(ApiRunning, ZDestroyedItIsSilent) {
  ring_command_doorbell();
  hca_destroy(hca);
  const unsigned before = host.dmas;
  hca_sim_advance(w.now += 10'000'000, 0);
  EXPECT_EQ(host.dmas, before);
  EXPECT_EQ(hca_mmio_read(hca, 0, 4), 0xffffffffu);
  hca_destroy(hca);
  hca_destroy(nullptr);
  char err[100] = "";
  EXPECT_NE(hca_inject(hca, "drop=0", err, sizeof err), 0);
  EXPECT_NE(hca_mmio_read(w.hca[1], 0, 4), 0xffffffffu);  // the other serves on
}

}  // namespace
