// SPDX-License-Identifier: BSD-3-Clause
// The address at which the two ends of a wire meet: unix:PATH, tcp:HOST:PORT or shm:NAME.
#ifndef HCASIM_WIRE_ADDRESS_H
#define HCASIM_WIRE_ADDRESS_H

#include <cstdint>
#include <string>

namespace hcasim::wire {

struct Address {
  bool tcp = false;
  bool shared = false;  // shm: what is sent goes through shared memory; the socket is for finding each other
  std::string path;     // unix, shm: of the socket
  std::string host;     // tcp: a name or an address (IPv6 without brackets)
  std::uint16_t port = 0;
  std::string text;  // as given by the user
};

// False: err says what is allowed. Does not check whether anything exists there.
bool parse_address(const std::string& text, Address& out, std::string& err);

}  // namespace hcasim::wire
#endif
