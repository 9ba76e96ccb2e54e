// SPDX-License-Identifier: BSD-3-Clause
// One client's talk with one card: takes its messages, does what they ask for, answers.
#ifndef HCASIM_VFIO_USER_SESSION_H
#define HCASIM_VFIO_USER_SESSION_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vfio-user/card.h"
#include "vfio-user/connection.h"

namespace hcasim::vfio_user {

class Session {
 public:
  Session(Descriptor socket, Card& card);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int fd() const { return connection_.fd(); }

  enum class State : std::uint8_t {
    kIdle,  // nothing more to be read now
    kBusy,  // there may be more
    kFull,  // answers wait until the client reads
    kEnd,   // over: why()
  };
  // Serves up to `most` messages.
  State serve(unsigned most = 64);
  // Empty: the client has closed the connection.
  const std::string& why() const { return why_; }
  std::uint64_t messages() const { return messages_; }

 private:
  State take_messages(unsigned most);
  void handle(Message& message);
  void arrive(std::uint32_t region, std::uint64_t offset);
  void run_on();
  // 0, or the errno of the answer.
  int version(Message& message);
  int dma_map(Message& message);
  int dma_unmap(Message& message);
  int device_info(Message& message);
  int region_info(Message& message);
  int interrupt_info(Message& message);
  int set_interrupts(Message& message);
  int set_vectors(const vfio_irq_set& request, Message& message);
  int set_error(const vfio_irq_set& request, Message& message);
  int region_read(Message& message);
  int region_write(Message& message);
  int write_multi(Message& message);
  void answer(const void* first = nullptr, std::size_t first_len = 0, const void* second = nullptr,
              std::size_t second_len = 0);

  Connection connection_;
  Card& card_;
  Header request_{};
  bool agreed_ = false;  // on the version
  bool answered_ = false;
  bool arrived_ = false;  // something was written since the model ran last
  using WrittenPage = std::pair<std::uint32_t, std::uint64_t>;  // region, number of the page
  std::vector<WrittenPage> pages_;                              // by the writes that are being served
  std::string why_;
  std::vector<std::uint8_t> data_;
  std::uint64_t messages_ = 0;
};

}  // namespace hcasim::vfio_user
#endif
