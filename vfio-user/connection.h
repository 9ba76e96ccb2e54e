// SPDX-License-Identifier: BSD-3-Clause
// One end of a stream socket that carries vfio-user messages: cuts the stream into messages with their file
// descriptors, and sends answers. It never blocks.
//
// A header is read by itself, then what follows it: a descriptor comes with the first byte of the write that
// it was sent with, and in a longer read that could be the byte of another message.
#ifndef HCASIM_VFIO_USER_CONNECTION_H
#define HCASIM_VFIO_USER_CONNECTION_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "vfio-user/descriptor.h"
#include "vfio-user/protocol.h"

namespace hcasim::vfio_user {

struct Message {
  Header header{};
  std::vector<std::uint8_t> body;
  std::vector<Descriptor> files;
};

class Connection {
 public:
  explicit Connection(Descriptor socket);

  int fd() const { return socket_.get(); }

  enum class Read : std::uint8_t {
    kMessage,  // message() is one
    kNothing,  // there is none yet
    kEnd,      // the other end has gone, or has sent what is no message: why()
  };
  Read read();
  Message& message() { return message_; }
  const std::string& why() const { return why_; }

  // Sends a header and up to two pieces of what follows it. What the socket does not take now is kept, and
  // sent by flush().
  void send(const Header& header, const void* first = nullptr, std::size_t first_len = 0,
            const void* second = nullptr, std::size_t second_len = 0);
  // As send(), of a command with file descriptors, which stay the caller's: blocks until it is sent. For
  // clients.
  bool command(const Header& header, const void* body, std::size_t len, const int* files, unsigned count);
  bool unsent() const { return !unsent_.empty(); }
  // False: the other end has gone.
  bool flush();

 private:
  // Reads up to len bytes, with the descriptors that come with them. -1: there are none now; 0: the end.
  long receive(void* to, std::size_t len);
  Read end(const std::string& why);

  Descriptor socket_;
  Message message_;
  std::size_t got_ = 0;  // bytes of the message that is being read
  bool too_many_ = false, broken_ = false;
  std::string why_;
  std::vector<std::uint8_t> unsent_;
};

}  // namespace hcasim::vfio_user
#endif
