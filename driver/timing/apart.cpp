// SPDX-License-Identifier: BSD-3-Clause
// Measurements in processes of their own: HCAs cannot be added once time has started.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "driver/timing/measure.h"

namespace hcasim::timing {

using nlohmann::json;

namespace {

json to_json(const Result& r) {
  return {{"median", r.median},
          {"mean", r.mean},
          {"p99", r.p99},
          {"least", r.least},
          {"most", r.most},
          {"p999", r.p999},
          {"deviation", r.deviation},
          {"rate", r.rate},
          {"bits", r.bits},
          {"cpu_send", r.cpu_send},
          {"cpu_receive", r.cpu_receive},
          {"lost", r.lost},
          {"simulated_ns", r.simulated_ns},
          {"shares", r.shares},
          {"digest", r.digest},
          {"counters", r.counters}};
}

Result from_json(const json& j) {
  Result r;
  r.median = j.at("median");
  r.mean = j.at("mean");
  r.p99 = j.at("p99");
  r.p999 = j.at("p999");
  r.deviation = j.at("deviation");
  r.least = j.at("least");
  r.most = j.at("most");
  r.rate = j.at("rate");
  r.bits = j.at("bits");
  r.cpu_send = j.at("cpu_send");
  r.cpu_receive = j.at("cpu_receive");
  r.lost = j.at("lost");
  r.simulated_ns = j.at("simulated_ns");
  r.shares = j.at("shares").get<std::vector<double>>();
  r.digest = j.at("digest");
  r.counters = j.at("counters").get<std::map<std::string, std::uint64_t>>();
  return r;
}

struct Child {
  std::size_t index = 0;
  pid_t pid = -1;
  int fd = -1;
  std::string text;
};

Child start(const Setup& setup, std::size_t index) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  }
  if (pid == 0) {
    close(ends[0]);
    json answer;
    try {
      answer = to_json(measure_here(setup));
    } catch (const SetupError& e) {
      answer = {{"error", e.what()}, {"setup", true}};
    } catch (const std::exception& e) {
      answer = {{"error", e.what()}};
    }
    const std::string text = answer.dump(-1, ' ', false, json::error_handler_t::replace);
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = write(ends[1], text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    _exit(0);  // skip all destructors
  }
  close(ends[1]);
  return {index, pid, ends[0], {}};
}

// Reads what is available. True: end of file.
bool read_more(Child& c) {
  char part[4096];
  const ssize_t n = read(c.fd, part, sizeof part);
  if (n < 0 && errno == EINTR) return false;
  if (n > 0) {
    c.text.append(part, static_cast<std::size_t>(n));
    return false;
  }
  return true;
}

Result finish(Child& c) {
  close(c.fd);
  int status = 0;
  while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {
  }
  const json answer = json::parse(c.text, nullptr, false);
  if (answer.is_discarded()) {
    throw std::runtime_error(WIFSIGNALED(status)
                                 ? "the measurement ended by signal " + std::to_string(WTERMSIG(status))
                                 : "the measurement gave no result");
  }
  if (answer.contains("error")) {
    const std::string why = answer["error"];
    if (answer.contains("setup")) throw SetupError(why);
    throw std::runtime_error(why);
  }
  return from_json(answer);
}

}  // namespace

std::vector<Result> measure_all(const std::vector<Setup>& setups, unsigned jobs,
                                const std::function<void(std::size_t)>& done) {
  for (const Setup& s : setups) (void)s.resolved();  // reports impossible set-ups before anything runs
  std::vector<Result> results(setups.size());
  std::vector<Child> running;
  std::exception_ptr error;
  std::size_t next = 0;
  while (!running.empty() || (next < setups.size() && !error)) {
    while (!error && next < setups.size() && running.size() < std::max(1u, jobs)) {
      try {
        running.push_back(start(setups[next], next));
        ++next;
      } catch (...) {
        error = std::current_exception();
      }
    }
    std::vector<pollfd> fds;
    fds.reserve(running.size());
    for (const Child& c : running) fds.push_back({c.fd, POLLIN, 0});
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;  // interrupted
    for (std::size_t i = running.size(); i-- > 0;) {
      if (fds[i].revents == 0 || !read_more(running[i])) continue;
      Child c = std::move(running[i]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      try {
        results[c.index] = finish(c);
        if (done) done(c.index);
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
  return results;
}

Result measure(const Setup& setup) { return measure_all({setup}, 1).front(); }

}  // namespace hcasim::timing
