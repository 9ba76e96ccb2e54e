// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/bounded_write.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace hcasim::vfio_user {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{50}, kLongest{100};

// Of a thread that writes.
struct Writer {
  const pthread_t thread = ::pthread_self();
  std::atomic<Clock::rep> since{0};  // 0: it does not write
};

// Looks at the writers now and then, and ends a write that lasts: again and again, as a signal that comes
// before the write waits does not end it.
class Watch {
 public:
  Watch() {
    struct sigaction nothing = {};
    nothing.sa_handler = [](int) {};  // without SA_RESTART
    ::sigaction(SIGURG, &nothing, nullptr);
    thread_ = std::thread([this] { run(); });
  }
  ~Watch() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  void join(Writer& writer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    writers_.push_back(&writer);
  }
  void leave(Writer& writer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    writers_.erase(std::remove(writers_.begin(), writers_.end(), &writer), writers_.end());
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!wake_.wait_for(lock, kLook, [this] { return over_; })) {
      const Clock::rep limit = (Clock::now() - kLongest).time_since_epoch().count();
      for (const Writer* w : writers_) {
        const Clock::rep since = w->since.load(std::memory_order_acquire);
        if (since != 0 && since < limit) ::pthread_kill(w->thread, SIGURG);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::vector<Writer*> writers_;
  std::thread thread_;
};

Watch& watch() {
  static Watch one;
  return one;
}

struct Joined {
  Joined() { watch().join(writer); }
  ~Joined() { watch().leave(writer); }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;
  Writer writer;
};

}  // namespace

bool bounded_write(int fd, const void* bytes, std::size_t len) {
  thread_local Joined self;
  self.writer.since.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  const ssize_t n = ::write(fd, bytes, len);
  const int error = errno;
  self.writer.since.store(0, std::memory_order_release);
  errno = error;
  return n == static_cast<ssize_t>(len);
}

}  // namespace hcasim::vfio_user
