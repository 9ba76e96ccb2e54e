// SPDX-License-Identifier: BSD-3-Clause
#include "vm.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace hcasim::tests {
namespace {

constexpr int kReplyTimeoutMs = 20000;

std::string plugin_path() {
  const char* path = std::getenv("HCASIM_TEST_PLUGIN");
  return path ? path : HCASIM_TEST_DEFAULT_PLUGIN;
}

std::string temporary_log() {
  char name[] = "/tmp/hcasim-test-XXXXXX";
  int fd = mkstemp(name);
  if (fd < 0) throw std::runtime_error("no temporary file");
  close(fd);
  return name;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Where the HCAs of all QEMUs of this process say at their end which validation rules were broken. Every test
// fails if any was: none has a driver that would.
class RuleCheck : public ::testing::EmptyTestEventListener {
 public:
  RuleCheck() : report_(temporary_log()) { setenv("HCASIM_RULES_REPORT", report_.c_str(), 1); }
  ~RuleCheck() override { unlink(report_.c_str()); }
  void OnTestEnd(const ::testing::TestInfo&) override {
    std::istringstream lines(file_text(report_));
    for (std::string line, name, mode, total; std::getline(lines, line);) {
      EXPECT_TRUE(std::istringstream(line) >> name >> mode >> total) << line;
      EXPECT_EQ(total, "0") << "rules broken: " << line;
    }
    if (truncate(report_.c_str(), 0) != 0) ADD_FAILURE() << "cannot empty " << report_;
  }

 private:
  const std::string report_;
};

const bool g_listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new RuleCheck);
  return true;
}();

pid_t spawn(const std::vector<std::string>& args, const std::string& log) {
  std::vector<char*> argv;
  for (const auto& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) return pid;
  // A test that dies must leave no QEMU behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  int out = open(log.c_str(), O_WRONLY | O_APPEND);
  int in = open("/dev/null", O_RDONLY);
  dup2(in, 0);
  dup2(out, 1);
  dup2(out, 2);
  setenv("QEMU_MODULE_DIR", HCASIM_TEST_QEMU_MODULES, 1);
#ifdef HCASIM_TEST_PRELOAD
  // The sanitizers' run time has to come first. QEMU itself leaks at its end, and switches stacks.
  setenv("LD_PRELOAD", HCASIM_TEST_PRELOAD, 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0", 1);
#endif
  execv(argv[0], argv.data());
  _exit(127);
}

// Exit status, -1 if a signal ended it or it had to be killed after timeout_ms.
int reap(pid_t pid, int timeout_ms) {
  int status = 0;
  for (int waited = 0; waited < timeout_ms; waited += 5) {
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return -1;
}

void send_line(int fd, const std::string& line) {
  std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t n = send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n <= 0) throw std::runtime_error("QEMU does not listen any more");
    done += static_cast<size_t>(n);
  }
}

bool receive_line(int fd, std::string* buffer, std::string* line, int timeout_ms) {
  for (;;) {
    size_t end = buffer->find('\n');
    if (end != std::string::npos) {
      *line = buffer->substr(0, end);
      buffer->erase(0, end + 1);
      return true;
    }
    pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, timeout_ms) <= 0) return false;
    char chunk[4096];
    ssize_t n = recv(fd, chunk, sizeof(chunk), 0);
    if (n <= 0) return false;
    buffer->append(chunk, static_cast<size_t>(n));
  }
}

std::string hex(uint64_t v) {
  std::ostringstream s;
  s << "0x" << std::hex << v;
  return s.str();
}

char size_letter(unsigned size) { return size == 1 ? 'b' : size == 2 ? 'w' : size == 4 ? 'l' : 'q'; }

}  // namespace

QemuExit run_qemu(const std::vector<std::string>& args, const std::string& plugin) {
  std::string log = temporary_log();
  std::vector<std::string> all = {
      HCASIM_TEST_QEMU, "-plugin", plugin.empty() ? plugin_path() : plugin, "-display", "none",
      "-nodefaults",    "-S"};
  all.insert(all.end(), args.begin(), args.end());
  QemuExit result;
  result.status = reap(spawn(all, log), 20000);
  result.output = file_text(log);
  unlink(log.c_str());
  return result;
}

Vm::Vm(const std::vector<std::string>& args, const std::vector<std::string>& accel) : log_(temporary_log()) {
  int qtest[2], qmp[2];
  // Only the far ends are inherited by QEMU.
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, qtest) || socketpair(AF_UNIX, SOCK_STREAM, 0, qmp)) {
    throw std::runtime_error("socketpair failed");
  }
  qtest_ = qtest[0];
  qmp_ = qmp[0];
  fcntl(qtest_, F_SETFD, FD_CLOEXEC);
  fcntl(qmp_, F_SETFD, FD_CLOEXEC);
  std::vector<std::string> all = {HCASIM_TEST_QEMU,
                                  "-plugin",
                                  plugin_path(),
                                  "-display",
                                  "none",
                                  "-nodefaults",
                                  "-m",
                                  "128",
                                  "-chardev",
                                  "socket,id=qtest,fd=" + std::to_string(qtest[1]),
                                  "-qtest",
                                  "chardev:qtest",
                                  "-qtest-log",
                                  "none",
                                  "-chardev",
                                  "socket,id=mon,fd=" + std::to_string(qmp[1]),
                                  "-mon",
                                  "chardev=mon,mode=control"};
  if (accel.empty()) {
    all.insert(all.end(), {"-accel", "qtest"});
  } else {
    all.insert(all.end(), accel.begin(), accel.end());
  }
  all.insert(all.end(), args.begin(), args.end());
  pid_ = spawn(all, log_);
  close(qtest[1]);
  close(qmp[1]);
  if (read_qmp(kReplyTimeoutMs).is_null()) throw std::runtime_error("QEMU did not start: " + output());
  this->qmp("qmp_capabilities");
}

int Vm::quit() {
  if (!alive()) return -1;
  try {
    send_line(qmp_, R"({"execute": "quit"})");
  } catch (const std::exception&) {  // ended by itself: its status says how
  }
  int status = reap(pid_, 5000);
  pid_ = -1;
  return status;
}

Vm::~Vm() {
  quit();
  close(qtest_);  // not sooner: a command not yet read is lost with its connection
  close(qmp_);
  unlink(log_.c_str());
}

bool Vm::alive() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

std::string Vm::output() const { return file_text(log_); }

std::string Vm::ask(const std::string& line) {
  send_line(qtest_, line);
  std::string reply;
  do {
    if (!receive_line(qtest_, &qtest_in_, &reply, kReplyTimeoutMs)) {
      throw std::runtime_error("no answer to '" + line + "': " + output());
    }
  } while (reply.rfind("IRQ", 0) == 0);
  if (reply.rfind("OK", 0) != 0) throw std::runtime_error(line + ": " + reply);
  return reply.size() > 3 ? reply.substr(3) : "";
}

uint64_t Vm::read(uint64_t addr, unsigned size) {
  return std::stoull(ask(std::string("read") + size_letter(size) + " " + hex(addr)), nullptr, 16);
}

void Vm::write(uint64_t addr, uint64_t value, unsigned size) {
  ask(std::string("write") + size_letter(size) + " " + hex(addr) + " " + hex(value));
}

std::vector<uint8_t> Vm::read_bytes(uint64_t addr, size_t len) {
  std::string text = ask("read " + hex(addr) + " " + std::to_string(len));
  std::vector<uint8_t> bytes;
  for (size_t i = 2; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void Vm::write_bytes(uint64_t addr, const std::vector<uint8_t>& bytes) {
  std::ostringstream line;
  line << "write " << hex(addr) << " " << bytes.size() << " 0x" << std::hex << std::setfill('0');
  for (uint8_t b : bytes) line << std::setw(2) << unsigned{b};
  ask(line.str());
}

uint32_t Vm::in32(uint16_t port) {
  return static_cast<uint32_t>(std::stoul(ask("inl " + hex(port)), nullptr, 16));
}

void Vm::out32(uint16_t port, uint32_t value) { ask("outl " + hex(port) + " " + hex(value)); }

int64_t Vm::clock_step(int64_t ns) { return std::stoll(ask("clock_step " + std::to_string(ns))); }

nlohmann::json Vm::read_qmp(int timeout_ms) {
  std::string line;
  if (!receive_line(qmp_, &qmp_in_, &line, timeout_ms)) return nullptr;
  return nlohmann::json::parse(line);
}

nlohmann::json Vm::qmp(const std::string& command, const nlohmann::json& arguments) {
  nlohmann::json request = {{"execute", command}};
  if (!arguments.empty()) request["arguments"] = arguments;
  send_line(qmp_, request.dump());
  for (;;) {
    nlohmann::json reply = read_qmp(kReplyTimeoutMs);
    if (reply.is_null()) throw std::runtime_error("no answer to " + command + ": " + output());
    if (reply.contains("event")) {
      events_.push_back(reply);
    } else {
      return reply.contains("return") ? reply["return"] : reply;
    }
  }
}

nlohmann::json Vm::qom_get(const std::string& id, const std::string& property) {
  return qmp("qom-get", {{"path", "/machine/peripheral/" + id}, {"property", property}});
}

std::string Vm::hmp(const std::string& line) {
  return qmp("human-monitor-command", {{"command-line", line}}).get<std::string>();
}

bool Vm::wait_event(const std::string& name) {
  for (;;) {
    for (size_t i = 0; i < events_.size(); i++) {
      if (events_[i]["event"] == name) {
        events_.erase(events_.begin() + static_cast<long>(i));
        return true;
      }
    }
    nlohmann::json next = read_qmp(10000);
    if (next.is_null()) return false;
    events_.push_back(next);
  }
}

void Vm::enable_ecam() {
  set_config(0, 0, 0x64, 0);
  set_config(0, 0, 0x60, kEcam | 1);
  ecam_ = true;
}

uint64_t Vm::config(unsigned bus, unsigned slot, unsigned offset, unsigned size) {
  if (ecam_) return read(ecam_address(bus, slot, offset), size);
  out32(0xcf8, 0x80000000u | bus << 16 | slot << 11 | (offset & 0xfc));
  uint32_t dword = in32(0xcfc);
  return size == 4 ? dword : (dword >> (offset & 3) * 8) & ((1u << size * 8) - 1);
}

void Vm::set_config(unsigned bus, unsigned slot, unsigned offset, uint64_t value, unsigned size) {
  if (ecam_) return write(ecam_address(bus, slot, offset), value, size);
  out32(0xcf8, 0x80000000u | bus << 16 | slot << 11 | (offset & 0xfc));
  const char* op = size == 1 ? "outb " : size == 2 ? "outw " : "outl ";
  ask(op + hex(0xcfc + (offset & 3)) + " " + hex(value));
}

unsigned Vm::find_capability(unsigned bus, unsigned slot, uint8_t id) {
  auto at = static_cast<unsigned>(config(bus, slot, 0x34, 1));
  for (int i = 0; at && i < 48; i++) {
    if (config(bus, slot, at, 1) == id) return at;
    at = static_cast<unsigned>(config(bus, slot, at + 1, 1));
  }
  return 0;
}

}  // namespace hcasim::tests
