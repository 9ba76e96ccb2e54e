// SPDX-License-Identifier: BSD-3-Clause
// Linked into a program of the bare driver: with HCASIM_BARE=vfio-user in the environment, its machines reach
// their HCAs through a vfio-user session each, over a socket pair. The server gets its turns in this thread,
// and time is the machine's, so that a test goes as it does over the C API.
#include <sys/socket.h>

#include <cstdlib>
#include <stdexcept>

#include "driver/bare/machine.h"
#include "driver/vfio-user/client.h"
#include "vfio-user/card.h"
#include "vfio-user/session.h"
#include "vfio-user/timekeeper.h"

namespace hcasim::bare {
namespace {

class Behind final : public Attachment {
 public:
  Behind(Machine& machine, const std::string& options, Function::Log log)
      : time_([&machine] { return machine.now(); }, 0),
        card_("hca", options, time_, std::move(log), [](int, bool, bool) {}),
        machine_(machine) {}

  hca_t* handle() override { return card_.handle(); }
  std::uint64_t take_interrupts() override { return client_ ? client_->take_interrupts() : 0; }
  void read(std::uint64_t offset, void* bytes, unsigned len) override {
    client().read(0, offset, bytes, len);
  }
  void write(std::uint64_t offset, const void* bytes, unsigned len) override {
    client().write(0, offset, bytes, len, true);
  }
  void reset() override { client().reset(); }

 private:
  // The client comes when the HCA can be driven: once simulated time has begun.
  VfioUserClient& client() {
    if (client_) return *client_;
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      throw std::runtime_error("no socket pair");
    session_ = std::make_unique<vfio_user::Session>(vfio_user::Descriptor(ends[0]), card_);
    client_ = std::make_unique<VfioUserClient>(machine_.memory(), vfio_user::Descriptor(ends[1]),
                                               [this] { session_->serve(); });
    return *client_;
  }

  vfio_user::Timekeeper time_;
  vfio_user::Card card_;
  Machine& machine_;
  std::unique_ptr<vfio_user::Session> session_;
  std::unique_ptr<VfioUserClient> client_;
};

const bool attached = [] {
  const char* way = std::getenv("HCASIM_BARE");
  if (way && std::string(way) == "vfio-user") {
    Function::attach() = [](Machine& machine, const std::string& options, Function::Log log) {
      try {
        return std::make_unique<Behind>(machine, options, std::move(log));
      } catch (const std::runtime_error& e) {
        throw BareError(e.what());
      }
    };
  }
  return true;
}();

}  // namespace
}  // namespace hcasim::bare
