// SPDX-License-Identifier: GPL-2.0-or-later
// The processes that simulate a fabric together, each a part of it: ranks of MPI. One alone needs no MPI, and
// what is called here does nothing then. All ranks make the same calls in the same order.
#ifndef HCASIM_FABRIC_RANKS_H
#define HCASIM_FABRIC_RANKS_H

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/frame.h"

namespace hcasim::fabric {

class Ranks {
 public:
  // Joins the others if mpirun has started this process; else it is alone. Once a process.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  unsigned number() const { return number_; }
  unsigned count() const { return count_; }

  // Element by element, over all ranks. Of one length everywhere.
  void add(std::vector<std::uint64_t>& values) const;
  void greatest(std::vector<std::uint64_t>& values) const;
  void least(std::vector<Time>& values) const;
  // Of each rank its text.
  std::vector<std::string> texts(const std::string& own) const;
  // out: bytes for each rank. in: what each rank has for this one.
  using Bytes = std::vector<std::uint8_t>;
  void exchange(const std::vector<Bytes>& out, std::vector<Bytes>& in) const;

  // Ends all ranks at once, with status 1; one alone returns.
  void abort() const;

 private:
  unsigned number_ = 0, count_ = 1;
};

// Was this process started by mpirun?
bool started_by_mpi();
// Becomes mpirun, which starts this program, with the same arguments, so many times. Returns why it cannot.
std::string start_by_mpi(unsigned ranks, char** argv);

}  // namespace hcasim::fabric
#endif
