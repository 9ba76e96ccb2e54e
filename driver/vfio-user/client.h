// SPDX-License-Identifier: BSD-3-Clause
// The bare driver's PCI function behind a vfio-user socket: what a virtual machine monitor does of the
// protocol. The pages of the machine's memory that the HCA may access are mapped to it, each run by itself.
#ifndef HCASIM_DRIVER_VFIO_USER_CLIENT_H
#define HCASIM_DRIVER_VFIO_USER_CLIENT_H

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "driver/bare/memory.h"
#include "driver/bare/pcie.h"
#include "vfio-user/connection.h"
#include "vfio-user/protocol.h"

namespace hcasim::bare {

// The server has answered with an error, or has gone.
class VfioUserError : public std::runtime_error {
 public:
  VfioUserError(const std::string& what, int number) : std::runtime_error(what), number_(number) {}
  int number() const { return number_; }  // errno; 0: it has gone

 private:
  int number_;
};

class VfioUserClient : private HostMemory::Observer {
 public:
  // Agrees on the version, gives the server the memory and an eventfd for each vector, and enables memory
  // space, bus master and MSI-X. serve: where the server is in this process, gives it a turn; else answers
  // are waited for, up to `patience` ms.
  VfioUserClient(HostMemory& memory, vfio_user::Descriptor socket, std::function<void()> serve = {},
                 int patience = 10'000);
  ~VfioUserClient();

  void read(unsigned region, std::uint64_t offset, void* bytes, std::uint32_t len);
  // posted: no answer is waited for.
  void write(unsigned region, std::uint64_t offset, const void* bytes, std::uint32_t len, bool posted);
  // DEVICE_RESET; then the function is enabled again.
  void reset();
  std::uint32_t config(unsigned offset, unsigned len);
  void set_config(unsigned offset, std::uint32_t value, unsigned len);
  // Vectors whose eventfds were signalled since.
  std::uint64_t take_interrupts();
  // Waits for one, up to `ms`; false: none came.
  bool wait_for_interrupt(int ms);
  std::uint64_t region_size(unsigned region);

  // A command with what follows it, and its answer; throws VfioUserError.
  std::vector<std::uint8_t> command(vfio_user::Command command, const void* body, std::size_t len,
                                    const std::vector<int>& files = {});

 private:
  void accessible(std::uint64_t bus, std::size_t len, bool on) override;
  void bus_master(bool on) override;
  void map(std::uint64_t bus, std::uint64_t len);
  void agree();
  void give_eventfds();
  void enable();
  void wait_for_answer(std::uint16_t id);

  HostMemory& memory_;
  vfio_user::Connection connection_;
  std::function<void()> serve_;
  int patience_;
  std::uint16_t id_ = 0;
  bool master_ = true;
  unsigned msix_ = 0;                              // offset of the MSI-X capability
  std::map<std::uint64_t, std::uint64_t> mapped_;  // address -> bytes
  std::vector<vfio_user::Descriptor> eventfds_;
  vfio_user::Descriptor epoll_;
};

}  // namespace hcasim::bare
#endif
