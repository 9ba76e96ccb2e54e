// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/server.h"

#include <sys/stat.h>

#include <boost/asio.hpp>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include "card/api/hca_api.h"
#include "vfio-user/card.h"
#include "vfio-user/control.h"
#include "vfio-user/session.h"
#include "vfio-user/timekeeper.h"

namespace hcasim::vfio_user {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;
using Steady = std::chrono::steady_clock;
using boost::system::error_code;

namespace {

constexpr std::size_t kLongestRequest = 64 << 10;  // of a control connection

std::int64_t monotonic() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Steady::now().time_since_epoch()).count();
}

Steady::time_point at(std::int64_t ns) { return Steady::time_point(std::chrono::nanoseconds(ns)); }

// A path that somebody listens at stays his.
Local::acceptor listen(asio::io_context& loop, const std::string& path) {
  error_code ec;
  Local::socket probe(loop);
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    throw std::runtime_error(path + ": a socket's path has at most " +
                             std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " characters");
  probe.connect(Local::endpoint(path), ec);
  if (!ec) throw std::runtime_error(path + ": another process serves this socket");
  if (ec == asio::error::connection_refused) {
    // A socket without a listener was left behind by a process that is gone. So says connect() of any other
    // file, too.
    struct stat file {};
    if (::lstat(path.c_str(), &file) == 0 && !S_ISSOCK(file.st_mode))
      throw std::runtime_error(path +
                               ": there is something else than a socket: name another path, or remove it");
    ::unlink(path.c_str());
  }
  Local::acceptor acceptor(loop);
  acceptor.open();
  acceptor.bind(Local::endpoint(path), ec);
  if (!ec) acceptor.listen(4, ec);
  if (ec) throw std::runtime_error(path + ": " + ec.message());
  return acceptor;
}

}  // namespace

class Server::Implementation {
 public:
  Implementation(ServerOptions options, Log log)
      : options_(std::move(options)), log_(std::move(log)), time_(monotonic, options_.ahead) {}

  ~Implementation() {
    stop();
    cards_.clear();
    for (const auto& slot : slots_) ::unlink(slot->path.c_str());
    if (control_) ::unlink(options_.control.c_str());
  }

  void add(const std::string& path, const std::string& name, const std::string& options) {
    auto slot = std::make_unique<Slot>(loop_, listen(loop_, path));
    slot->path = path;
    Slot* const here = slot.get();
    cards_.push_back(std::make_unique<Card>(
        name, options, time_,
        [this, name](int level, const std::string& line) { log_(level, name + ": " + line); },
        [this, here](int fd, bool read, bool write) { watch(*here, fd, read, write); }));
    slot->card = cards_.back().get();
    slots_.push_back(std::move(slot));
  }

  void run() {
    if (!time_.start()) throw std::runtime_error("the cards cannot start");
    if (!options_.control.empty()) {
      control_.emplace(listen(loop_, options_.control));
      accept_control();
    }
    signals_.async_wait([this](error_code ec, int) {
      if (!ec) stop();
    });
    for (auto& slot : slots_) {
      poll_wire(*slot);
      accept(*slot);
      log_(HCA_LOG_INFO, slot->card->name() + ": waits for a client at " + slot->path);
    }
    time_.before();
    rearm();
    loop_.run();
  }

 private:
  // A card with its socket and, while there is one, its client.
  struct Slot {
    Slot(asio::io_context& loop, Local::acceptor from)
        : acceptor(std::move(from)), socket(loop), wire_timer(loop), retry(loop) {}
    std::string path;
    Card* card = nullptr;
    Local::acceptor acceptor;
    asio::posix::stream_descriptor socket;  // the session's, to wait for
    std::unique_ptr<Session> session;
    std::uint64_t turns = 0;  // asked for: the last one is the session's next, the others are of no interest
    struct Watched {
      asio::posix::stream_descriptor descriptor;
      bool read = false, write = false, waits_read = false, waits_write = false;
    };
    std::map<int, std::shared_ptr<Watched>> watched;  // descriptors of the wire
    asio::steady_timer wire_timer, retry;
    std::int64_t wire_at = HCA_NEVER;
    bool served = false;
  };

  struct Control : std::enable_shared_from_this<Control> {
    explicit Control(Local::socket from) : socket(std::move(from)), request(kLongestRequest) {}
    Local::socket socket;
    asio::streambuf request;
    std::string answer;
  };

  // ---- clients ----

  void accept(Slot& slot) {
    slot.acceptor.async_accept([this, &slot](error_code ec, Local::socket client) {
      if (ec == asio::error::operation_aborted) return;
      if (ec) return accept_later(slot, ec);
      // One that has gone by now was perhaps another server's, which looked whether the path is taken.
      if (slot.session) {
        error_code ignored;
        slot.socket.cancel(ignored);  // this turn says itself what is waited for
        serve(slot);
      }
      if (slot.session)
        log_(HCA_LOG_WARNING, slot.card->name() + ": a second client is turned away");
      else
        begin(slot, client.release());
      accept(slot);
    });
  }

  // There may be no descriptor left, for a while.
  void accept_later(Slot& slot, error_code ec) {
    log_(HCA_LOG_WARNING, slot.card->name() + ": no client can be taken: " + ec.message());
    slot.retry.expires_after(std::chrono::seconds(1));
    slot.retry.async_wait([this, &slot](error_code aborted) {
      if (!aborted) accept(slot);
    });
  }

  void begin(Slot& slot, int fd) {
    slot.session = std::make_unique<Session>(Descriptor(fd), *slot.card);
    slot.socket.assign(fd);
    log_(HCA_LOG_INFO, slot.card->name() + ": a client is there");
    wait(slot, asio::posix::stream_descriptor::wait_read);
  }

  void wait(Slot& slot, asio::posix::stream_descriptor::wait_type what) {
    slot.socket.async_wait(what, [this, &slot, turn = ++slot.turns](error_code ec) {
      if (!ec && turn == slot.turns) serve(slot);
    });
  }

  void serve(Slot& slot) {
    Session::State state = slot.session->serve();
    if (state == Session::State::kIdle && options_.spin > 0) state = spin(slot);
    switch (state) {
      case Session::State::kIdle:
        wait(slot, asio::posix::stream_descriptor::wait_read);
        break;
      case Session::State::kFull:
        wait(slot, asio::posix::stream_descriptor::wait_write);
        break;
      case Session::State::kBusy:  // others have their turn
        asio::post(loop_, [this, &slot, turn = ++slot.turns] {
          if (turn == slot.turns) serve(slot);
        });
        break;
      case Session::State::kEnd:
        end(slot);
        break;
    }
    rearm();
  }

  // An answer often brings the next request: to find it takes less time than to be woken for it. Now and then
  // all others have their turn, however busy this client is.
  Session::State spin(Slot& slot) {
    constexpr int kTurns = 8;
    Session::State state = Session::State::kIdle;
    std::int64_t now = monotonic(), until = now + options_.spin;
    const std::int64_t others = now + kTurns * options_.spin;
    for (; now < until; now = monotonic()) {
      if (now >= others) return Session::State::kBusy;
      const std::uint64_t before = slot.session->messages();
      state = slot.session->serve();
      if (state != Session::State::kIdle) return state;
      if (slot.session->messages() != before) until = monotonic() + options_.spin;
      if (time_.next() <= now) run_model();
    }
    return state;
  }

  void end(Slot& slot) {
    const std::string why = slot.session->why();
    const bool spoke = slot.session->messages() != 0;
    log_(why.empty() ? HCA_LOG_INFO : HCA_LOG_WARNING,
         slot.card->name() + ": the client has gone" + (why.empty() ? "" : ": " + why));
    ++slot.turns;
    slot.socket.release();
    slot.session.reset();
    slot.served = slot.served || spoke;
    bool all = true;
    for (const auto& s : slots_) all = all && s->served && !s->session;
    if (options_.once && all) stop();
  }

  // ---- time ----

  void run_model() {
    time_.before();
    time_.after();
  }

  // A timer that comes too early finds nothing to do, which costs less than to put it off at each message.
  void rearm() {
    const std::int64_t next = time_.next();
    if (next >= armed_) return;
    armed_ = next;
    timer_.expires_at(at(next));
    timer_.async_wait([this](error_code ec) {
      if (ec) return;
      armed_ = HCA_NEVER;
      run_model();
      rearm();
    });
  }

  // ---- wires ----

  void poll_wire(Slot& slot) {
    time_.before();
    const std::int64_t next = slot.card->poll_wire(monotonic());
    time_.after();
    rearm();
    if (next >= slot.wire_at || next == HCA_NEVER) return;
    slot.wire_at = next;
    slot.wire_timer.expires_at(at(next));
    slot.wire_timer.async_wait([this, &slot](error_code ec) {
      if (ec) return;
      slot.wire_at = HCA_NEVER;
      poll_wire(slot);
    });
  }

  void watch(Slot& slot, int fd, bool read, bool write) {
    std::shared_ptr<Slot::Watched>& watched = slot.watched[fd];
    if (!read && !write) {
      if (watched) watched->descriptor.release();  // it is the wire's
      slot.watched.erase(fd);
      return;
    }
    if (!watched)
      watched = std::make_shared<Slot::Watched>(Slot::Watched{asio::posix::stream_descriptor(loop_, fd)});
    watched->read = read;
    watched->write = write;
    watch_again(slot, watched);
  }

  void watch_again(Slot& slot, const std::shared_ptr<Slot::Watched>& watched) {
    const auto wait_for = [&](auto what, bool Slot::Watched::*wanted, bool Slot::Watched::*waits) {
      if (!((*watched).*wanted) || (*watched).*waits) return;
      (*watched).*waits = true;
      watched->descriptor.async_wait(what, [this, &slot, watched, waits](error_code ec) {
        (*watched).*waits = false;
        if (ec) return;
        poll_wire(slot);
        if (watched->descriptor.is_open()) watch_again(slot, watched);
      });
    };
    wait_for(asio::posix::stream_descriptor::wait_read, &Slot::Watched::read, &Slot::Watched::waits_read);
    wait_for(asio::posix::stream_descriptor::wait_write, &Slot::Watched::write, &Slot::Watched::waits_write);
  }

  // ---- control ----

  void accept_control() {
    control_->async_accept([this](error_code ec, Local::socket client) {
      if (ec == asio::error::operation_aborted) return;
      if (ec) {  // as for the cards: there may be no descriptor left, for a while
        log_(HCA_LOG_WARNING, "the control socket takes nobody: " + ec.message());
        control_retry_.expires_after(std::chrono::seconds(1));
        control_retry_.async_wait([this](error_code aborted) {
          if (!aborted) accept_control();
        });
        return;
      }
      serve_control(std::make_shared<Control>(std::move(client)));
      accept_control();
    });
  }

  void serve_control(const std::shared_ptr<Control>& c) {
    asio::async_read_until(c->socket, c->request, '\n', [this, c](error_code ec, std::size_t n) {
      if (ec) return;  // also for a line that is too long
      std::string line(asio::buffers_begin(c->request.data()),
                       asio::buffers_begin(c->request.data()) + static_cast<std::ptrdiff_t>(n));
      c->request.consume(n);
      c->answer = control(cards_, line) + "\n";
      rearm();
      asio::async_write(c->socket, asio::buffer(c->answer), [this, c](error_code failed, std::size_t) {
        if (!failed) serve_control(c);
      });
    });
  }

  void stop() {
    loop_.stop();
    for (auto& slot : slots_) {
      ++slot->turns;
      if (slot->session) slot->socket.release();
      slot->session.reset();
      for (auto& [fd, watched] : slot->watched) watched->descriptor.release();
      slot->watched.clear();
    }
  }

  ServerOptions options_;
  Log log_;
  asio::io_context loop_{1};
  asio::steady_timer timer_{loop_};
  asio::signal_set signals_{loop_, SIGINT, SIGTERM};
  std::int64_t armed_ = HCA_NEVER;
  Timekeeper time_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Card>> cards_;
  std::optional<Local::acceptor> control_;
  asio::steady_timer control_retry_{loop_};
};

Server::Server(ServerOptions options, Log log)
    : implementation_(std::make_unique<Implementation>(std::move(options), std::move(log))) {}

Server::~Server() = default;

void Server::add(const std::string& path, const std::string& name, const std::string& hca_options) {
  implementation_->add(path, name, hca_options);
}

void Server::run() { implementation_->run(); }

}  // namespace hcasim::vfio_user
