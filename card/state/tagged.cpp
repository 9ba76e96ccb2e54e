// SPDX-License-Identifier: BSD-3-Clause
#include "card/state/tagged.h"

#include <libdeflate.h>

#include <cstring>

namespace hcasim::saved {

namespace {
constexpr std::string_view kMagic = "hcastate";
constexpr std::size_t kHead = 8 + 4 + 4 + 8, kTail = 4;
constexpr std::size_t kLongestName = 128;

template <class T>
T fixed_at(const char* p) {
  T v = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) v = static_cast<T>(v << 8 | static_cast<unsigned char>(p[i]));
  return v;
}
template <class T>
void put_at(char* p, T v) {
  for (std::size_t i = 0; i < sizeof(T); ++i) p[i] = static_cast<char>(v >> (8 * i));
}
bool printable(std::string_view name) {
  for (const char c : name)
    if (c <= ' ' || c > '~') return false;
  return !name.empty() && name.size() <= kLongestName;
}
}  // namespace

const char* name_of(Type type) {
  switch (type) {
    case Type::kNumber:
      return "number";
    case Type::kBytes:
      return "bytes";
    case Type::kGroup:
      return "group";
    case Type::kList:
      return "list";
    case Type::kReal:
      return "real";
    case Type::kNone:
    case Type::kCount:
      break;
  }
  return "none";
}

// ---- writing ----

TaggedWriter::TaggedWriter(std::uint32_t version) {
  out_ = kMagic;
  fixed(kFormat);
  fixed(version);
  fixed(std::uint64_t{0});  // finish()
  names_.emplace("", 0);
}

template <class T>
void TaggedWriter::fixed(T v) {
  out_.resize(out_.size() + sizeof v);
  put_at(&out_[out_.size() - sizeof v], v);
}

void TaggedWriter::varint(std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out_ += static_cast<char>(v | 0x80);
  out_ += static_cast<char>(v);
}

void TaggedWriter::tag(std::string_view name, Type type) {
  if (!open_.empty()) ++open_.back().items;
  const auto known = names_.find(name);
  varint((known != names_.end() ? known->second : names_.size()) << 3 | static_cast<unsigned>(type));
  if (known != names_.end()) return;
  names_.emplace(kept_.emplace_back(name), names_.size());
  varint(name.size());
  out_ += name;
}

void TaggedWriter::number(std::string_view name, std::uint64_t v) {
  tag(name, Type::kNumber);
  varint(v);
}

void TaggedWriter::real(std::string_view name, double v) {
  tag(name, Type::kReal);
  std::uint64_t bits = 0;
  static_assert(sizeof bits == sizeof v);
  std::memcpy(&bits, &v, sizeof v);
  fixed(bits);
}

void TaggedWriter::bytes(std::string_view name, const void* data, std::size_t len) {
  tag(name, Type::kBytes);
  varint(len);
  out_.append(static_cast<const char*>(data), len);
}

void TaggedWriter::open(std::string_view name, Type type) {
  tag(name, type);
  open_.push_back({out_.size(), type});
  fixed(std::uint32_t{0});
  if (type == Type::kList) fixed(std::uint32_t{0});
}

void TaggedWriter::close() {
  const Open open = open_.back();
  open_.pop_back();
  const std::size_t len = out_.size() - open.at - sizeof(std::uint32_t);
  if (len > UINT32_MAX) throw StateError("the state is larger than the 4 GiB that a group of it may have");
  put_at(&out_[open.at], static_cast<std::uint32_t>(len));
  if (open.type == Type::kList) put_at(&out_[open.at + sizeof(std::uint32_t)], open.items);
}

std::string TaggedWriter::finish() && {
  put_at(&out_[kHead - sizeof(std::uint64_t)], std::uint64_t{out_.size() - kHead});
  fixed(libdeflate_crc32(0, out_.data(), out_.size()));
  return std::move(out_);
}

// ---- reading ----

TaggedReader::TaggedReader(std::string_view file) {
  levels_.push_back({file, ""});
  if (file.size() < kHead + kTail)
    fail("this is not a saved state: it has " + std::to_string(file.size()) + " bytes");
  if (file.substr(0, kMagic.size()) != kMagic)
    fail("this is not a saved state: it does not begin with \"hcastate\"");
  if (const auto format = fixed_at<std::uint32_t>(&file[8]); format != kFormat)
    fail("the state is in format " + std::to_string(format) +
         ", which this version does not read: it reads " + std::to_string(kFormat));
  version_ = fixed_at<std::uint32_t>(&file[12]);
  if (const auto len = fixed_at<std::uint64_t>(&file[16]); len != file.size() - kHead - kTail)
    fail("the state is cut off or has something behind it: it says that it has " + std::to_string(len) +
         " bytes, and has " + std::to_string(file.size() - kHead - kTail));
  const std::string_view all = file.substr(0, file.size() - kTail);
  if (libdeflate_crc32(0, all.data(), all.size()) != fixed_at<std::uint32_t>(&file[all.size()]))
    fail("the state is damaged: its checksum is wrong");
  levels_.back().left = all.substr(kHead);
  names_.emplace_back("");
}

std::string TaggedReader::path() const {
  std::string path;
  for (const Level& level : levels_) {
    const std::string name = level.name.empty() && path.empty() ? "" : std::string(level.name);
    if (!path.empty() && !name.empty()) path += '.';
    path += name;
  }
  if (!item_.name.empty()) {
    if (!path.empty()) path += '.';
    path += item_.name;
  } else if (levels_.back().index != 0) {
    path += '[' + std::to_string(levels_.back().index - 1) + ']';
  }
  return path;
}

void TaggedReader::fail(const std::string& what) const {
  const std::string where = path();
  throw StateError(where.empty() ? what : where + ": " + what);
}

std::string_view TaggedReader::take(std::size_t len) {
  std::string_view& left = levels_.back().left;
  if (len > left.size()) fail("the item reaches beyond the end of what it lies in");
  const std::string_view taken = left.substr(0, len);
  left.remove_prefix(len);
  return taken;
}

std::uint64_t TaggedReader::varint() {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    if (shift == 63 && byte > 1) break;
    v |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) != 0) continue;
    if (byte == 0 && shift != 0) break;
    return v;
  }
  fail("a number is not in its shortest form, or has more than 64 bits");
}

void TaggedReader::read() {
  item_ = Item{};
  const std::uint64_t tag = varint();
  const std::uint64_t name = tag >> 3;
  if (name > names_.size()) fail("the item's name has not been said");
  if (name == names_.size()) {
    const std::string_view text = take(varint());
    if (!printable(text)) fail("the name of an item is not of 1 to 128 printable characters");
    names_.push_back(text);
  }
  ++levels_.back().index;
  item_.name = names_[name];
  if ((tag & 7) >= static_cast<unsigned>(Type::kCount)) fail("an item is of no known type");
  item_.type = static_cast<Type>(tag & 7);
  switch (item_.type) {
    case Type::kNumber:
      item_.number = varint();
      break;
    case Type::kBytes:
      item_.content = take(varint());
      break;
    case Type::kReal: {
      const auto bits = fixed_at<std::uint64_t>(take(sizeof(std::uint64_t)).data());
      std::memcpy(&item_.real, &bits, sizeof bits);
      break;
    }
    case Type::kGroup:
    case Type::kList:
      item_.content = take(fixed_at<std::uint32_t>(take(sizeof(std::uint32_t)).data()));
      break;
    case Type::kNone:
    case Type::kCount:
      break;
  }
}

const Item& TaggedReader::peek() {
  if (!peeked_) read();
  peeked_ = true;
  return item_;
}

const Item& TaggedReader::next() {
  if (!peeked_) read();
  peeked_ = false;
  return item_;
}

void TaggedReader::enter() {
  if (item_.type != Type::kGroup && item_.type != Type::kList)
    fail(std::string("a group or list is expected, and this is ") + name_of(item_.type));
  if (levels_.size() >= kDepth) fail("groups lie in each other more than 64 deep");
  const bool list = item_.type == Type::kList;
  levels_.push_back({item_.content, item_.name, 0, 0, list});
  item_ = Item{};
  if (!list) return;
  levels_.back().count = fixed_at<std::uint32_t>(take(sizeof(std::uint32_t)).data());
  if (levels_.back().count > levels_.back().left.size()) fail("a list has more items than bytes");
}

void TaggedReader::skip() {
  if (item_.type != Type::kGroup && item_.type != Type::kList) return;
  enter();
  while (!at_end()) {
    next();
    skip();
  }
  leave();
}

void TaggedReader::leave() {
  if (!at_end() || peeked_)
    fail("there is more than expected, " + std::string(peek().name.empty() ? "an element" : peek().name));
  if (levels_.back().list && levels_.back().count != levels_.back().index)
    fail("a list has fewer items than it says");
  item_ = Item{};
  item_.name = levels_.back().name;
  levels_.pop_back();
  if (levels_.empty()) levels_.emplace_back();
}

}  // namespace hcasim::saved
