// SPDX-License-Identifier: BSD-3-Clause
// A DMA engine of two functions, each with a host of its own.
#ifndef HCASIM_TESTS_MODEL_TWO_FUNCTIONS_H
#define HCASIM_TESTS_MODEL_TWO_FUNCTIONS_H

#include <utility>
#include <vector>

#include "fake_host.h"
#include "model/fault/injector.h"
#include "model/pcie/dma.h"

namespace hcasim::test {

struct TwoFunctions {
  TwoFunctions(const Profile& profile, traces::Tracer& tracer, FaultSink& faults)
      : injector("two_injector", tracer, faults),
        dma("two_dma", profile, PerFunction<HostPort>({&first, &second}), tracer, faults) {
    dma.take_faults_from(injector);
    dma.on_write_error([this](Time t, WriteOwner owner) { write_errors.emplace_back(t, owner); });
  }
  void reset() {
    injector.end_all();
    dma.reset();
    for (const FunctionId f : {0, 1}) dma.set_enabled(f, true);
    first.clear();
    second.clear();
    write_errors.clear();
  }

  FakeHost first, second;
  Injector injector;
  Dma dma;
  std::vector<std::pair<Time, WriteOwner>> write_errors;
};

}  // namespace hcasim::test
#endif
