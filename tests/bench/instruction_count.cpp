// SPDX-License-Identifier: BSD-3-Clause
#include "instruction_count.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace hcasim::bench {

namespace {

namespace fs = std::filesystem;

// Loop that the counter is tried with: at least two instructions a turn, and not many more in any build.
constexpr std::uint64_t kTurns = 1'000'000, kLeast = 2, kMost = 16;

void count_turns() {
  for (volatile std::uint64_t i = 0; i < kTurns; i = i + 1) {
  }
}

// A folder that goes when it is left.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "hcasim-instructions-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const char* name, std::size_t number) const {
    return (path_ / (name + std::to_string(number))).string();
  }

 private:
  fs::path path_;
};

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Variables of `more` take the place of those of the same name in this process's environment.
std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** e = environ; *e; ++e) {
    const std::string entry = *e, name = entry.substr(0, entry.find('=') + 1);
    bool replaced = false;
    for (const std::string& m : more) replaced |= m.rfind(name, 0) == 0;
    if (!replaced) all.push_back(entry);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& w : words) list.push_back(w.data());
  list.push_back(nullptr);
  return list;
}

pid_t spawn(const Command& command, const std::string& out, const std::string& err) {
  std::vector<std::string> words = command.words, variables = environment_with(command.environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = -1;
  const int rc = posix_spawnp(&pid, words[0].c_str(), &files, nullptr, pointers(words).data(),
                              pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  if (rc != 0) throw std::system_error(rc, std::generic_category(), words[0]);
  return pid;
}

}  // namespace

InstructionCounter::InstructionCounter() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  fd_ = static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd_ < 0) {
    why_not_ = std::string("perf_event_open: ") + std::strerror(errno);
    return;
  }
  try {
    start();
    count_turns();
    const std::uint64_t n = stop();
    if (n < kLeast * kTurns || n > kMost * kTurns)
      why_not_ =
          "the counter says " + std::to_string(n) + " for a loop of " + std::to_string(kTurns) + " turns";
  } catch (const std::runtime_error& e) {
    why_not_ = e.what();
  }
}

InstructionCounter::~InstructionCounter() {
  if (fd_ >= 0) ::close(fd_);
}

void InstructionCounter::start() {
  ::ioctl(fd_, PERF_EVENT_IOC_RESET, 0);
  ::ioctl(fd_, PERF_EVENT_IOC_ENABLE, 0);
}

std::uint64_t InstructionCounter::stop() {
  ::ioctl(fd_, PERF_EVENT_IOC_DISABLE, 0);
  struct {
    std::uint64_t value, enabled, running;
  } now{};
  if (::read(fd_, &now, sizeof now) != static_cast<ssize_t>(sizeof now))
    throw std::runtime_error("the counter cannot be read");
  if (now.running == 0 || now.running < now.enabled)
    throw std::runtime_error("the counter was not this process's all the time");
  return now.value;
}

std::vector<std::string> run_commands(const std::vector<Command>& commands) {
  const Scratch scratch;
  std::vector<pid_t> children;
  for (const Command& c : commands)
    children.push_back(spawn(c, scratch.file("out", children.size()), scratch.file("err", children.size())));
  std::string failed;
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < children.size(); ++i) {  // all are waited for, whatever becomes of one
    int status = -1;
    while (::waitpid(children[i], &status, 0) < 0 && errno == EINTR) {
    }
    outputs.push_back(contents(scratch.file("out", i)));
    if (failed.empty() && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
      failed = commands[i].words[0] + " failed: " + contents(scratch.file("err", i)) + outputs.back();
  }
  if (!failed.empty()) throw std::runtime_error(failed);
  return outputs;
}

bool has_valgrind() {
  try {
    run_commands({{{"valgrind", "--version"}, {}}});
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::vector<std::uint64_t> valgrind_instructions(const std::vector<Command>& commands) {
  const Scratch scratch;
  std::vector<Command> wrapped;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    wrapped.push_back(commands[i]);
    const std::vector<std::string> before = {"valgrind", "-q", "--tool=cachegrind", "--cache-sim=no",
                                             "--cachegrind-out-file=" + scratch.file("counts", i)};
    wrapped[i].words.insert(wrapped[i].words.begin(), before.begin(), before.end());
  }
  run_commands(wrapped);
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string text = contents(scratch.file("counts", i)), key = "\nsummary: ";
    const std::size_t at = text.rfind(key);
    const std::uint64_t n =
        at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
    if (n == 0) throw std::runtime_error("valgrind wrote no count");
    counts.push_back(n);
  }
  return counts;
}

}  // namespace hcasim::bench
