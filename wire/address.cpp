// SPDX-License-Identifier: BSD-3-Clause
#include "wire/address.h"

#include <sys/un.h>

#include <algorithm>
#include <cctype>

namespace hcasim::wire {

bool parse_address(const std::string& text, Address& out, std::string& err) {
  out = Address{};
  out.text = text;
  if (text.rfind("unix:", 0) == 0) {
    out.path = text.substr(5);
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
  err = "it begins with unix: or tcp:";
  return false;
}

}  // namespace hcasim::wire
