// SPDX-License-Identifier: BSD-3-Clause
// Two cards back to back: an RDMA WRITE, verified, and what the cards did meanwhile in back_to_back.vcd.
//   back_to_back [OPTIONS OF THE CARDS]     such as kernel=native,profile=connectx6-hdr200
#include "platform.h"

int sc_main(int argc, char** argv) {
  example::Platform platform("platform", argc > 1 ? argv[1] : "");
  unsigned wrong = ~0u;
  platform.cpu.program = [&](example::bare::Machine& machine) { wrong = example::rdma_write(machine); };

  sc_core::sc_trace_file* vcd = sc_core::sc_create_vcd_trace_file("back_to_back");
  vcd->set_time_unit(1, sc_core::SC_PS);
  platform.left.trace(vcd);
  platform.right.trace(vcd);
  sc_core::sc_start();
  sc_core::sc_close_vcd_trace_file(vcd);

  std::printf("left  %s\nright %s\n", platform.left.statistics().c_str(),
              platform.right.statistics().c_str());
  std::printf(wrong == 0 ? "every byte is right\n" : "%u bytes are wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
