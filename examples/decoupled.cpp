// SPDX-License-Identifier: BSD-3-Clause
// The same with a decoupled CPU: its time runs ahead of SystemC's by up to a quantum, and its accesses say by
// how much.
//   decoupled [QUANTUM IN NS [OPTIONS OF THE CARDS]]
#include <cstdio>
#include <cstdlib>

#include "platform.h"

int sc_main(int argc, char** argv) {
  char* end = nullptr;
  const double quantum = argc > 1 ? std::strtod(argv[1], &end) : 2000;
  if ((end != nullptr && *end != '\0') || !(quantum > 0 && quantum <= 1e9)) {
    std::fprintf(stderr, "decoupled: %s is no quantum: give a number of ns, from above 0 to 1e9\n", argv[1]);
    return 2;
  }
  tlm::tlm_global_quantum::instance().set(sc_core::sc_time(quantum, sc_core::SC_NS));
  example::Platform platform("platform", argc > 2 ? argv[2] : "");
  unsigned wrong = ~0u;
  platform.cpu.program = [&](example::bare::Machine& machine) { wrong = example::rdma_write(machine); };
  sc_core::sc_start();
  std::printf("quantum %g ns: %s after %s\n", quantum, wrong == 0 ? "every byte is right" : "WRONG",
              sc_core::sc_time_stamp().to_string().c_str());
  return wrong == 0 ? 0 : 1;
}
