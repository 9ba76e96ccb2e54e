// SPDX-License-Identifier: BSD-3-Clause
// How many instructions a piece of this program takes in user mode: asked of the processor, or, for a whole
// process, of valgrind.
#ifndef HCASIM_TESTS_BENCH_INSTRUCTION_COUNT_H
#define HCASIM_TESTS_BENCH_INSTRUCTION_COUNT_H

#include <cstdint>
#include <string>
#include <vector>

namespace hcasim::bench {

// The processor's counter of retired instructions, of this thread and in user mode only (perf_event_open(2)).
// Machines without one are common: virtual machines, containers that may not ask.
class InstructionCounter {
 public:
  InstructionCounter();
  ~InstructionCounter();
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  // Empty: it counts, as tried with a loop of known length. Otherwise the reason why not.
  const std::string& why_not() const { return why_not_; }
  void start();
  // Since start(). Throws std::runtime_error if the counter was shared with others meanwhile: the figure
  // would be an estimate.
  std::uint64_t stop();

 private:
  int fd_ = -1;
  std::string why_not_;
};

// A child process: its command line, and environment variables as NAME=VALUE beside this process's own.
struct Command {
  std::vector<std::string> words, environment;
};

// Runs all at the same time and returns what each wrote to its standard output. Throws std::runtime_error,
// with what it wrote to its standard error, if one fails.
std::vector<std::string> run_commands(const std::vector<Command>& commands);

// Whether valgrind can be run here.
bool has_valgrind();
// Instructions in user mode that each process takes from its start to its end. Throws std::runtime_error.
std::vector<std::uint64_t> valgrind_instructions(const std::vector<Command>& commands);

}  // namespace hcasim::bench
#endif
