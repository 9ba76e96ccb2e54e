// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace hcasim::vfio_user {

namespace {

constexpr std::uint16_t kMajor = 0, kMinor = 1;

// What a message begins with, if it is long enough.
template <class T>
bool take(const Message& message, T& out) {
  if (message.body.size() < sizeof out) return false;
  std::memcpy(&out, message.body.data(), sizeof out);
  return true;
}

constexpr std::uint64_t kDoorbellPage = 4096;  // bytes
constexpr std::size_t kMostPages =
    8;  // that are told apart among the writes that wait: each costs a run of the model
constexpr std::size_t kIrqSetBytes = offsetof(vfio_irq_set, data);

}  // namespace

Session::Session(Descriptor socket, Card& card) : connection_(std::move(socket)), card_(card) {
  card_.attach();
}

Session::~Session() {
  card_.time().before();
  card_.detach();
  card_.time().after();
}

Session::State Session::serve(unsigned most) {
  const State state = take_messages(most);
  run_on();
  pages_.clear();
  return state;
}

Session::State Session::take_messages(unsigned most) {
  for (unsigned i = 0; i < most; ++i) {
    if (!connection_.flush()) {
      why_ = connection_.why();
      return State::kEnd;
    }
    if (connection_.unsent()) return State::kFull;
    switch (connection_.read()) {
      case Connection::Read::kNothing:
        return State::kIdle;
      case Connection::Read::kEnd:
        why_ = connection_.why();
        return State::kEnd;
      case Connection::Read::kMessage:
        handle(connection_.message());
        if (!why_.empty()) return State::kEnd;
    }
  }
  return State::kBusy;
}

void Session::answer(const void* first, std::size_t first_len, const void* second, std::size_t second_len) {
  answered_ = true;
  if ((request_.flags & kNoReply) != 0) return;
  Header header = request_;
  header.size = static_cast<std::uint32_t>(sizeof header + first_len + second_len);
  header.flags = kReply;
  header.error = 0;
  connection_.send(header, first, first_len, second, second_len);
}

// Posted writes that wait in the socket have all come by now, so that they come at one time, and the model
// runs on when all of them have: a guest that posts faster than the model runs waits for its completions,
// instead of filling its VMM's memory with doorbells of WQEs that were executed long ago. But a doorbell page
// that is written for the first time among them belongs to another queue, whose WQEs may count on what the
// others did (flow table entries that a queue writes, and frames that are to find them): what came before it
// has its time first, as it would have had if this process had not been kept waiting.
void Session::arrive(std::uint32_t region, std::uint64_t offset) {
  const WrittenPage page{region, offset / kDoorbellPage};
  if (std::find(pages_.begin(), pages_.end(), page) == pages_.end() && pages_.size() < kMostPages) {
    run_on();
    pages_.push_back(page);
  }
  if (!arrived_) card_.time().before();
  arrived_ = true;
}

void Session::run_on() {
  if (arrived_) card_.time().after();
  arrived_ = false;
}

void Session::handle(Message& message) {
  ++messages_;
  request_ = message.header;
  answered_ = false;
  const auto command = static_cast<Command>(request_.command);
  const bool posted = (request_.flags & kNoReply) != 0 &&
                      (command == Command::kRegionWrite || command == Command::kRegionWriteMulti);
  if (!posted) run_on();
  if ((request_.flags & kTypeMask) != 0) {
    why_ = "an answer to what was not asked";
    return;
  }
  if (!agreed_ && command != Command::kVersion) {
    why_ = "the first message is not of the version";
    return;
  }
  int error = ENOTSUP;
  switch (command) {
    case Command::kVersion:
      error = version(message);
      break;
    case Command::kDmaMap:
      error = dma_map(message);
      break;
    case Command::kDmaUnmap:
      error = dma_unmap(message);
      break;
    case Command::kDeviceGetInfo:
      error = device_info(message);
      break;
    case Command::kDeviceGetRegionInfo:
      error = region_info(message);
      break;
    case Command::kDeviceGetIrqInfo:
      error = interrupt_info(message);
      break;
    case Command::kDeviceSetIrqs:
      error = set_interrupts(message);
      break;
    case Command::kRegionRead:
      error = region_read(message);
      break;
    case Command::kRegionWrite:
      error = region_write(message);
      break;
    case Command::kRegionWriteMulti:
      error = write_multi(message);
      break;
    case Command::kDeviceReset:
      card_.time().before();
      card_.reset();
      error = 0;
      break;
    default:
      break;
  }
  if (error != 0 && (request_.flags & kNoReply) == 0) {
    Header header = request_;
    header.size = sizeof header;
    header.flags = kReply | kError;
    header.error = static_cast<std::uint32_t>(error);
    connection_.send(header);
  } else if (error == 0 && !answered_) {
    answer();
  }
  if (agreed_ && !posted) {
    arrived_ = true;
    run_on();
  }
}

// The answer is the lower of the two minor versions; clients refuse a higher one than their own.
int Session::version(Message& message) {
  Version proposed{};
  if (agreed_ || !take(message, proposed)) return EINVAL;
  const auto* const text = reinterpret_cast<const char*>(message.body.data() + sizeof proposed);
  const std::size_t len = message.body.size() - sizeof proposed;
  const bool said = len != 0 && text[len - 1] == '\0' && len > 1;
  const auto capabilities =
      said ? nlohmann::json::parse(text, text + len - 1, nullptr, false) : nlohmann::json::object();
  if (proposed.major != kMajor || capabilities.is_discarded() || (len != 0 && text[len - 1] != '\0')) {
    card_.log(HCA_LOG_ERROR, "a client proposes version " + std::to_string(proposed.major) + "." +
                                 std::to_string(proposed.minor) + " of vfio-user" +
                                 (proposed.major != kMajor ? "; this is 0." + std::to_string(kMinor)
                                                           : " with capabilities that are no JSON"));
    return EINVAL;
  }
  const Version ours{kMajor, std::min(proposed.minor, kMinor)};
  const nlohmann::json offered = {{"capabilities",
                                   {{"max_msg_fds", kMostFds},
                                    {"max_data_xfer_size", kMostData},
                                    {"max_dma_maps", kMostMaps},
                                    {"pgsizes", 4096},
                                    {"write_multiple", true}}}};
  const std::string json = offered.dump();
  agreed_ = true;
  answer(&ours, sizeof ours, json.c_str(), json.size() + 1);
  return 0;
}

// ---- memory ----

int Session::dma_map(Message& message) {
  DmaMapRequest request{};
  if (!take(message, request) || request.argsz < sizeof request || message.files.size() > 1) return EINVAL;
  return card_.map(request, message.files.empty() ? Descriptor() : std::move(message.files[0]));
}

// What the card has been lent of that memory is given back before the answer.
int Session::dma_unmap(Message& message) {
  DmaUnmapRequest request{};
  if (!take(message, request) || request.argsz < sizeof request) return EINVAL;
  if ((request.flags & kUnmapDirtyBitmap) != 0) return ENOTSUP;  // which pages were written is not kept
  card_.time().before();
  if ((request.flags & kUnmapAll) != 0) {
    if (request.address != 0 || request.size != 0) return EINVAL;
    card_.unmap_all();
  } else if (const int error = card_.unmap(request.address, request.size)) {
    return error;
  }
  answer(&request, sizeof request);
  return 0;
}

// ---- what the device is ----

int Session::device_info(Message& message) {
  DeviceInfo info{};
  if (!take(message, info) || info.argsz < sizeof info) return EINVAL;
  info = {sizeof info, VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET, kRegions, kInterruptKinds};
  answer(&info, sizeof info);
  return 0;
}

// No region can be mapped: a doorbell that is only stored in memory would be seen late or, as many QPs share
// one register, not at all; and with one such region clients wait for the answer of each write to any.
int Session::region_info(Message& message) {
  vfio_region_info info{};
  if (!take(message, info) || info.argsz < sizeof info || info.index >= kRegions) return EINVAL;
  const std::uint32_t index = info.index;
  info = {};
  info.argsz = sizeof info;
  info.index = index;
  info.size = Card::region_size(index);
  if (info.size != 0) info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
  answer(&info, sizeof info);
  return 0;
}

int Session::interrupt_info(Message& message) {
  vfio_irq_info info{};
  if (message.body.size() < offsetof(vfio_irq_info, count) + sizeof info.count) return EINVAL;
  std::memcpy(&info, message.body.data(), std::min(sizeof info, message.body.size()));
  if (info.argsz < offsetof(vfio_irq_info, count) + sizeof info.count || info.index >= kInterruptKinds)
    return EINVAL;
  const std::uint32_t index = info.index;
  info = {};
  info.argsz = sizeof info;
  info.index = index;
  if (index == VFIO_PCI_MSIX_IRQ_INDEX) info.count = card_.vectors().count();
  if (index == VFIO_PCI_ERR_IRQ_INDEX) info.count = 1;
  if (info.count != 0) info.flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
  answer(&info, sizeof info);
  return 0;
}

// ---- interrupts ----

int Session::set_interrupts(Message& message) {
  vfio_irq_set request{};
  if (message.body.size() < kIrqSetBytes) return EINVAL;
  std::memcpy(&request, message.body.data(), kIrqSetBytes);
  if (request.argsz < kIrqSetBytes) return EINVAL;
  if ((request.flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) != VFIO_IRQ_SET_ACTION_TRIGGER) return ENOTSUP;
  if (!std::all_of(message.files.begin(), message.files.end(), Interrupts::is_eventfd)) return EINVAL;
  if (request.index == VFIO_PCI_MSIX_IRQ_INDEX) return set_vectors(request, message);
  if (request.index == VFIO_PCI_ERR_IRQ_INDEX) return set_error(request, message);
  return request.index < kInterruptKinds && request.count == 0 ? 0 : EINVAL;
}

int Session::set_vectors(const vfio_irq_set& request, Message& message) {
  Interrupts& vectors = card_.vectors();
  if (request.start > vectors.count() || request.count > vectors.count() - request.start) return EINVAL;
  switch (request.flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
    case VFIO_IRQ_SET_DATA_EVENTFD:  // one for each vector, or none for any
      if (!message.files.empty() && message.files.size() != request.count) return EINVAL;
      for (std::uint32_t i = 0; i < request.count; ++i)
        vectors.set(request.start + i, message.files.empty() ? Descriptor() : std::move(message.files[i]));
      return 0;
    case VFIO_IRQ_SET_DATA_NONE:
      if (request.count == 0) vectors.clear();
      for (std::uint32_t i = 0; i < request.count; ++i) vectors.signal(request.start + i);
      return 0;
    case VFIO_IRQ_SET_DATA_BOOL:
      if (message.body.size() - kIrqSetBytes < request.count) return EINVAL;
      for (std::uint32_t i = 0; i < request.count; ++i) {
        if (message.body[kIrqSetBytes + i] != 0) vectors.signal(request.start + i);
      }
      return 0;
    default:
      return EINVAL;
  }
}

int Session::set_error(const vfio_irq_set& request, Message& message) {
  if (request.start != 0 || request.count > 1 || message.files.size() > request.count) return EINVAL;
  const bool file = (request.flags & VFIO_IRQ_SET_DATA_TYPE_MASK) == VFIO_IRQ_SET_DATA_EVENTFD;
  card_.set_error_file(file && !message.files.empty() ? std::move(message.files[0]) : Descriptor());
  return 0;
}

// ---- regions ----

int Session::region_read(Message& message) {
  RegionAccess access{};
  if (!take(message, access) || access.count > kMostData) return EINVAL;
  data_.resize(access.count);
  card_.time().before();
  if (const int error = card_.read(access.region, access.offset, data_.data(), access.count)) return error;
  answer(&access, sizeof access, data_.data(), data_.size());
  return 0;
}

int Session::region_write(Message& message) {
  RegionAccess access{};
  if (!take(message, access) || message.body.size() - sizeof access < access.count) return EINVAL;
  arrive(access.region, access.offset);
  const int error =
      card_.write(access.region, access.offset, message.body.data() + sizeof access, access.count);
  if (error == 0) answer(&access, sizeof access);
  return error;
}

int Session::write_multi(Message& message) {
  WriteMulti many{};
  if (!take(message, many) || many.count > (message.body.size() - sizeof many) / sizeof(SingleWrite))
    return EINVAL;
  for (std::uint64_t i = 0; i < many.count; ++i) {
    SingleWrite one{};
    std::memcpy(&one, message.body.data() + sizeof many + i * sizeof one, sizeof one);
    if (one.count > sizeof one.data) return EINVAL;
    arrive(one.region, one.offset);
    if (const int error = card_.write(one.region, one.offset, one.data, one.count)) return error;
  }
  answer(&many, sizeof many);
  return 0;
}

}  // namespace hcasim::vfio_user
