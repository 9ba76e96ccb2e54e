// SPDX-License-Identifier: BSD-3-Clause
// What people write: the options of a card, profiles, plans of faults, faults by hand, filters of traces. The
// first byte says which; of a profile's file, what it is.
#include <sys/mman.h>
#include <unistd.h>

#include "card/api/options.h"
#include "door.h"
#include "model/profile.h"
#include "traces/filter.h"
#include "wire/address.h"

namespace hcasim::fuzz {

void open_door(const std::uint8_t* bytes, std::size_t len) {
  if (len == 0) return;
  const unsigned what = bytes[0] % 6;
  const std::string text(reinterpret_cast<const char*>(bytes + 1), len - 1);
  std::string err;
  const auto told = [&](bool taken) {
    if (!taken && err.empty()) finding("refused without a word");
  };
  switch (what) {
    case 0: {
      // Not those that name files and other processes.
      for (const char* key : {"trace=", "capture=", "record=", "faults=", "profile="})
        if (text.find(key) != std::string::npos) return;
      api::Settings settings;
      told(api::parse_options(text, settings, err));
      break;
    }
    case 1: {
      const int fd = ::memfd_create("door", MFD_CLOEXEC);
      if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        finding("no memory for the file");
      Profile profile;
      told(Profile::load("/proc/self/fd/" + std::to_string(fd), {}, profile, err));
      ::close(fd);
      break;
    }
    case 2: {
      Scenario scenario;
      told(parse_scenario(text, "door.toml", scenario, err));
      break;
    }
    case 3: {
      PortFaults port;
      std::vector<FaultSpec> plan;
      told(api::parse_faults(
          text, 0, port, plan, err, [](void*, const api::Fault&) {}, nullptr));
      break;
    }
    case 4: {
      traces::RecordFilter filter;
      told(filter.parse(text, &err));
      break;
    }
    default: {
      wire::Address address;
      told(wire::parse_address(text, address, err));
    }
  }
}

std::vector<std::string> seeds() {
  const auto of = [](char what, const std::string& text) { return std::string{what} + text; };
  return {of(0, "link=eth,generation=connectx7,mac=02:00:00:00:00:01,vfs=4,sfs=2,time=lockstep"),
          of(0, "host.interrupt_ns=500,engine.tx_more_ns=3.5,rules=strict,crypto=on,ports=2"),
          of(1,
             "name = \"x\"\ngeneration = \"connectx5\"\n[engine]\nwqe_parse_ns = 12\n[port]\nrate_gbps = "
             "100.0\n[cache]\nreads = 64\n"),
          of(2,
             "seed = 5\n[[fault]]\nkind = \"command\"\nopcode = \"CREATE_CQ\"\nnth = 2\nstatus = "
             "\"BAD_RES_STATE\"\n"),
          of(3, "drop=0.01,garble=0.1,seed=4"),
          of(3, "fault=command,opcode=CREATE_CQ,nth=2,status=BAD_RES_STATE;fault=pcie,error=surprise"),
          of(3, "none"),
          of(4, "qp=0x4a+0x50-0x5f,point=doorbell+cqe,kind=error+command,detail"),
          of(5, "tcp:[::1]:4791"),
          of(5, "shm:name"),
          of(5, "unix:/tmp/x")};
}

}  // namespace hcasim::fuzz
