// SPDX-License-Identifier: BSD-3-Clause
// A program that runs beside the test.
#ifndef HCASIM_TESTS_PROCESS_H
#define HCASIM_TESTS_PROCESS_H

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

namespace hcasim::test {

class Process {
 public:
  Process(const std::string& program, const std::vector<std::string>& args) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const auto& a : args) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fds[1], 1);
      dup2(fds[1], 2);
      execv(program.c_str(), argv.data());
      _exit(127);
    }
    close(fds[1]);
    out_ = fds[0];
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(out_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const {
    if (pid_ > 0) kill(pid_, number);
  }
  // Waits for its end; its status and all it has printed.
  int end() {
    if (pid_ < 0) return status_;
    while (read_some(-1)) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  // Until it has printed this; false: it has ended without.
  bool prints(const std::string& text) {
    while (said.find(text) == std::string::npos) {
      if (!read_some(-1)) return false;
    }
    return true;
  }
  // Whether it prints anything, or ends, within that time.
  bool stirs(int ms) { return read_some(ms) || said.empty(); }

  std::string said;

 private:
  bool read_some(int ms) {
    pollfd p{out_, POLLIN, 0};
    if (poll(&p, 1, ms) <= 0) return false;
    char text[4096];
    const ssize_t n = read(out_, text, sizeof text);
    if (n <= 0) return false;
    said.append(text, static_cast<std::size_t>(n));
    return true;
  }
  pid_t pid_ = -1;
  int out_ = -1, status_ = -1;
};

}  // namespace hcasim::test
#endif
