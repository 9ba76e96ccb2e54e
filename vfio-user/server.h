// SPDX-License-Identifier: BSD-3-Clause
// Serves cards to vfio-user clients, each card on a socket of its own, all in one thread: sessions, the
// sockets of wires, control connections and the model's next event are turns of one event loop.
#ifndef HCASIM_VFIO_USER_SERVER_H
#define HCASIM_VFIO_USER_SERVER_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hcasim::vfio_user {

struct ServerOptions {
  std::int64_t ahead = 10'000;  // ns that the model may run ahead of the clock
  std::int64_t spin = 0;        // ns that a socket is looked at again before the process sleeps
  bool once = false;            // ends when the first client of each card has gone
  std::string control;          // path of the control socket; none
};

class Server {
 public:
  using Log = std::function<void(int level, const std::string& line)>;

  Server(ServerOptions options, Log log);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // A card on the Unix socket of this path; a socket there that nobody serves any more is replaced. All cards
  // precede run(). Throws std::runtime_error that says what is wrong.
  void add(const std::string& path, const std::string& name, const std::string& hca_options);
  // Serves until SIGINT or SIGTERM comes, or, with `once`, the clients have gone. Throws as add().
  void run();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace hcasim::vfio_user
#endif
