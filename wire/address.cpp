// SPDX-License-Identifier: BSD-3-Clause
#include "wire/address.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace hcasim::wire {

namespace {

// A name is for the processes of one user on this machine; a path (it has a slash) is taken as it is.
bool shared_path(const std::string& name, std::string& path, std::string& err) {
  constexpr std::size_t kMost = 64;
  if (name.find('/') != std::string::npos) {
    path = name;
    return true;
  }
  const bool good = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (name.empty() || name.size() > kMost || !good) {
    err = "after shm: comes a name of 1 to " + std::to_string(kMost) +
          " letters, digits, '-', '_' and '.', or a path";
    return false;
  }
  path = "/dev/shm/hcasim-" + std::to_string(::geteuid()) + "-" + name;
  return true;
}

}  // namespace

bool parse_address(const std::string& text, Address& out, std::string& err) {
  out = Address{};
  out.text = text;
  out.shared = text.rfind("shm:", 0) == 0;
  if (out.shared && !shared_path(text.substr(4), out.path, err)) return false;
  if (out.shared || text.rfind("unix:", 0) == 0) {
    if (!out.shared) out.path = text.substr(5);
    constexpr std::size_t kHidden = 7;  // suffix of the name until somebody listens (Link)
    constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1 - kHidden;
    if (out.path.empty() || out.path.size() > kMost) {
      err = "the path of a socket has 1 to " + std::to_string(kMost) + " characters";
      return false;
    }
    return true;
  }
  if (text.rfind("tcp:", 0) == 0) {
    out.tcp = true;
    const std::string rest = text.substr(4);
    const std::size_t colon = rest.rfind(':');
    const std::string port = colon == std::string::npos ? "" : rest.substr(colon + 1);
    if (!port.empty() && port.size() <= 5 &&
        std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
      const unsigned long n = std::stoul(port);
      out.host = rest.substr(0, colon);
      if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']') {
        out.host = out.host.substr(1, out.host.size() - 2);
      }
      out.port = static_cast<std::uint16_t>(n);
      if (!out.host.empty() && n > 0 && n <= 0xffff) return true;
    }
    err = "after tcp: come HOST:PORT, with a port of 1 to 65535";
    return false;
  }
  err = "it begins with unix:, tcp: or shm:";
  return false;
}

}  // namespace hcasim::wire
