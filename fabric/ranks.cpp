// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/ranks.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>

#if HCASIM_MPI
#include <mpi.h>
#endif

namespace hcasim::fabric {

bool started_by_mpi() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(variable) != nullptr) return true;
  return false;
}

#if HCASIM_MPI

namespace {

// MPI's own waiting polls, which keeps the processor from those who are waited for where there are fewer
// processors than ranks, or others want them too. After so many polls a rank sleeps between them.
void finish(MPI_Request request) {
  constexpr unsigned kPolls = 200;
  constexpr timespec kNap{0, 20'000};
  int done = 0;
  for (unsigned polls = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0; ++polls)
    if (polls >= kPolls) nanosleep(&kNap, nullptr);
}

template <class T>
void reduce(std::vector<T>& v, MPI_Datatype type, MPI_Op op) {
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, v.data(), static_cast<int>(v.size()), type, op, MPI_COMM_WORLD, &request);
  finish(request);
}

}  // namespace

Ranks::Ranks() {
  if (!started_by_mpi()) return;
  MPI_Init(nullptr, nullptr);
  int number = 0, count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  number_ = static_cast<unsigned>(number);
  count_ = static_cast<unsigned>(count);
}

Ranks::~Ranks() {
  if (started_by_mpi()) MPI_Finalize();
}

void Ranks::add(std::vector<std::uint64_t>& v) const {
  if (count_ == 1) return;
  reduce(v, MPI_UINT64_T, MPI_SUM);
}

void Ranks::greatest(std::vector<std::uint64_t>& v) const {
  if (count_ == 1) return;
  reduce(v, MPI_UINT64_T, MPI_MAX);
}

void Ranks::least(std::vector<Time>& v) const {
  if (count_ == 1) return;
  reduce(v, MPI_INT64_T, MPI_MIN);
}

std::vector<std::string> Ranks::texts(const std::string& own) const {
  const std::vector<Bytes> out(count_, Bytes(own.begin(), own.end()));
  std::vector<Bytes> in;
  exchange(out, in);
  std::vector<std::string> all;
  for (const Bytes& text : in) all.emplace_back(text.begin(), text.end());
  return all;
}

void Ranks::exchange(const std::vector<Bytes>& out, std::vector<Bytes>& in) const {
  in.resize(count_);
  if (count_ == 1) {
    in[0] = out[0];
    return;
  }
  std::vector<int> sent(count_), received(count_), sent_at(count_), received_at(count_);
  Bytes all_sent;
  for (unsigned r = 0; r < count_; ++r) {
    sent[r] = static_cast<int>(out[r].size());
    sent_at[r] = static_cast<int>(all_sent.size());
    all_sent.insert(all_sent.end(), out[r].begin(), out[r].end());
  }
  MPI_Request request;
  MPI_Ialltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD, &request);
  finish(request);
  std::exclusive_scan(received.begin(), received.end(), received_at.begin(), 0);
  Bytes all_received(static_cast<std::size_t>(received_at.back() + received.back()));
  MPI_Ialltoallv(all_sent.data(), sent.data(), sent_at.data(), MPI_BYTE, all_received.data(), received.data(),
                 received_at.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
  finish(request);
  for (unsigned r = 0; r < count_; ++r) {
    const auto from = all_received.begin() + received_at[r];
    in[r].assign(from, from + received[r]);
  }
}

void Ranks::abort() const {
  if (count_ > 1) MPI_Abort(MPI_COMM_WORLD, 1);
}

std::string start_by_mpi(unsigned ranks, char** argv) {
  // What mpirun would refuse, or do to the processors' disadvantage: to run as root, more ranks than cores,
  // ranks tied to a core, ranks that spin while they wait for others, sockets within a machine. Open MPI's
  // names, 4 and 5; others' have no such.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle"})
    setenv(name, "1", 0);
  setenv("OMPI_MCA_btl", "^tcp", 0);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
  setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 0);
  std::string self(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  if (length <= 0) return std::string("its own path is not known: ") + std::strerror(errno);
  self.resize(static_cast<std::size_t>(length));
  std::string program = "mpirun", option = "-n", count = std::to_string(ranks);
  std::vector<char*> words{program.data(), option.data(), count.data(), self.data()};
  for (char** word = argv + 1; *word != nullptr; ++word) words.push_back(*word);
  words.push_back(nullptr);
  execvp(program.c_str(), words.data());
  return std::string("mpirun cannot be started (") + std::strerror(errno) +
         "): apt-get install mpi-default-bin";
}

#else

Ranks::Ranks() = default;
Ranks::~Ranks() = default;
void Ranks::add(std::vector<std::uint64_t>&) const {}
void Ranks::greatest(std::vector<std::uint64_t>&) const {}
void Ranks::least(std::vector<Time>&) const {}
std::vector<std::string> Ranks::texts(const std::string& own) const { return {own}; }
void Ranks::exchange(const std::vector<Bytes>& out, std::vector<Bytes>& in) const { in = out; }
void Ranks::abort() const {}

std::string start_by_mpi(unsigned, char**) {
  return "this program was built without MPI: apt-get install mpi-default-dev mpi-default-bin, and ./hcasim "
         "build";
}

#endif

}  // namespace hcasim::fabric
