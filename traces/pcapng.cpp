// SPDX-License-Identifier: BSD-3-Clause
#include "traces/pcapng.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

namespace hcasim::traces {
namespace {

// Blocks and options of the draft. All numbers are written little-endian.
constexpr std::uint32_t kSection = 0x0a0d0d0a, kInterface = 1, kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1a2b3c4d;
enum Option : std::uint16_t {
  kEnd = 0,
  kComment = 1,
  kIfName = 2,
  kUserApplication = 4,
  kPacketFlags = 2,
  kIfTimeResolution = 9,
  kIfFcsLength = 13,
};
constexpr std::int64_t kPsPerNs = 1000;

void put16(std::string& s, unsigned v) {
  s.push_back(static_cast<char>(v));
  s.push_back(static_cast<char>(v >> 8));
}
void put32(std::string& s, std::uint32_t v) {
  put16(s, v & 0xffff);
  put16(s, v >> 16);
}
void put_bytes(std::string& s, const void* bytes, std::size_t len) {
  s.append(static_cast<const char*>(bytes), len);
  s.append((4 - len % 4) % 4, '\0');
}
void put_option(std::string& s, Option code, const void* bytes, std::size_t len) {
  put16(s, code);
  put16(s, static_cast<unsigned>(len));
  put_bytes(s, bytes, len);
}
/// The header of an ERF record (Endace): time in 2^-32 s, little-endian; the rest in the network's order.
std::string erf_header(std::uint64_t ns, std::size_t len) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr unsigned kInfiniBand = 21, kVaryingLength = 4, kSize = 16;
  std::string s;
  put32(s, static_cast<std::uint32_t>(((ns % kSecond) << 32) / kSecond));
  put32(s, static_cast<std::uint32_t>(ns / kSecond));
  s.push_back(static_cast<char>(kInfiniBand));
  s.push_back(static_cast<char>(kVaryingLength));
  for (const std::size_t v : {len + kSize, std::size_t{0}, len}) {  // record, packets lost before it, packet
    s.push_back(static_cast<char>(v >> 8));
    s.push_back(static_cast<char>(v));
  }
  return s;
}

std::string block(std::uint32_t type, const std::string& body) {
  const auto len = static_cast<std::uint32_t>(body.size() + 12);
  std::string s;
  s.reserve(len);
  put32(s, type);
  put32(s, len);
  s += body;
  put32(s, len);
  return s;
}

std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Capture>>& open_captures() {
  static auto* files = new std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Capture>>;
  return *files;
}

/// Completes captures when the process calls exit().
void finish_all() {
  for (auto& f : open_captures())
    if (auto capture = f.second.lock()) capture->finish();
}

}  // namespace

std::shared_ptr<Capture> Capture::get(const std::string& path, std::string* err) {
  struct stat st;
  if (::stat(path.c_str(), &st) == 0) {
    auto it = open_captures().find({st.st_dev, st.st_ino});
    if (it != open_captures().end())
      if (auto capture = it->second.lock())
        if (capture->file_ != nullptr) return capture;
  }
  std::FILE* f = std::fopen(path.c_str(), "wbe");
  if (f == nullptr || ::fstat(fileno(f), &st) != 0) {
    if (err != nullptr) *err = "cannot write capture " + path + ": " + std::strerror(errno);
    if (f != nullptr) std::fclose(f);
    return nullptr;
  }
  static const int registered = std::atexit(finish_all);
  (void)registered;
  auto capture = std::make_shared<Capture>(f, path);
  open_captures()[{st.st_dev, st.st_ino}] = capture;
  return capture;
}

Capture::Capture(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {
  std::string s;
  put32(s, kByteOrder);
  put16(s, 1);  // version 1.0
  put16(s, 0);
  put32(s, UINT32_MAX);  // length of the section: unspecified
  put32(s, UINT32_MAX);
  const std::string application = "hcasim, simulated time";
  put_option(s, kUserApplication, application.data(), application.size());
  put_option(s, kEnd, nullptr, 0);
  write(block(kSection, s));
}

Capture::~Capture() { finish(); }

std::uint32_t Capture::add_interface(const std::string& name, Link link) {
  std::string s;
  put16(s, static_cast<unsigned>(link));
  put16(s, 0);
  put32(s, 0);  // packets are never cut
  const std::uint8_t nanoseconds = 9, fcs = 0;
  put_option(s, kIfName, name.data(), name.size());
  put_option(s, kIfTimeResolution, &nanoseconds, 1);
  if (link == Link::kEthernet) put_option(s, kIfFcsLength, &fcs, 1);
  put_option(s, kEnd, nullptr, 0);
  // The interface block precedes its packets in the file: packets are written after they are passed.
  write(block(kInterface, s));
  interfaces_.push_back(link);
  return static_cast<std::uint32_t>(interfaces_.size() - 1);
}

void Capture::packet(std::uint32_t interface, std::int64_t time_ps, Direction direction,
                     const std::uint8_t* bytes, std::size_t len, const char* comment) {
  if (file_ == nullptr) return;
  const std::uint64_t ns = time_ps < 0 ? 0 : static_cast<std::uint64_t>(time_ps / kPsPerNs);
  std::string s;
  s.reserve(len + 64);
  put32(s, interface);
  put32(s, static_cast<std::uint32_t>(ns >> 32));
  put32(s, static_cast<std::uint32_t>(ns));
  std::string kept = interfaces_.at(interface) == Link::kInfiniBand ? erf_header(ns, len) : "";
  kept.append(reinterpret_cast<const char*>(bytes), len);
  put32(s, static_cast<std::uint32_t>(kept.size()));  // captured, and on the wire
  put32(s, static_cast<std::uint32_t>(kept.size()));
  put_bytes(s, kept.data(), kept.size());
  std::string flags;
  put32(flags, static_cast<std::uint32_t>(direction));
  put_option(s, kPacketFlags, flags.data(), flags.size());
  if (comment != nullptr) put_option(s, kComment, comment, std::strlen(comment));
  put_option(s, kEnd, nullptr, 0);
  waiting_.push({time_ps, order_++, block(kEnhancedPacket, s)});
}

void Capture::settle(std::int64_t time_ps) {
  for (; !waiting_.empty() && waiting_.top().time_ps < time_ps; waiting_.pop()) write(waiting_.top().block);
}

void Capture::write(const std::string& bytes) {
  if (failed_ || file_ == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size())
    return;
  failed_ = true;
  std::fprintf(stderr, "hcasim: cannot write capture %s: %s; it ends here\n", path_.c_str(),
               std::strerror(errno));
}

void Capture::flush() {
  if (file_ != nullptr) std::fflush(file_);
}

void Capture::finish() {
  if (file_ == nullptr) return;
  settle(INT64_MAX);
  if (std::fclose(file_) != 0 && !failed_)
    std::fprintf(stderr, "hcasim: cannot write capture %s: %s\n", path_.c_str(), std::strerror(errno));
  file_ = nullptr;
}

}  // namespace hcasim::traces
