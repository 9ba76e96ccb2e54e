// SPDX-License-Identifier: BSD-3-Clause
// Saved states as bytes: tagged items, each with its name, in groups and lists that may lie in each other. It
// knows nothing of what is saved; whoever has the bytes can print them (tagged_text.h).
//
//   file    = "hcastate", u32 version of this format, u32 version of what is saved, u64 bytes of the items,
//             items, u32 CRC-32 (that of zlib) of all before; integers little-endian
//   item    = tag, [name], value
//   tag     = varint: number of the name << 3 | Type
//   name    = varint length, characters; only if the number is the next that no item before has had
//   number  = varint;  bytes = varint length, bytes;  real = 8 bytes, IEEE 754;  none = nothing
//   group = u32 length in bytes, items;  list = u32 length in bytes of what follows, u32 number of its items,
//   items
//
// Name 0 is the empty one: of a list's elements. A varint has 7 bits a byte, the low ones first (as LEB128),
// in as few bytes as there can be; so that a state has one form only.
#ifndef HCASIM_CARD_STATE_TAGGED_H
#define HCASIM_CARD_STATE_TAGGED_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hcasim::saved {

constexpr std::uint32_t kFormat = 1;

enum class Type : std::uint8_t { kNumber, kBytes, kGroup, kList, kReal, kNone, kCount };
const char* name_of(Type type);

// What is wrong with a state: where (a path such as "model.port.tx"), and what.
class StateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TaggedWriter {
 public:
  explicit TaggedWriter(std::uint32_t version);

  void number(std::string_view name, std::uint64_t v);
  void real(std::string_view name, double v);
  void bytes(std::string_view name, const void* data, std::size_t len);
  void none(std::string_view name) { tag(name, Type::kNone); }
  // Items up to the close() that belongs to it lie in it.
  void open(std::string_view name, Type type);
  void close();

  // Ends it. Throws StateError if it is larger than the format has room for.
  std::string finish() &&;

 private:
  void tag(std::string_view name, Type type);
  void varint(std::uint64_t v);
  template <class T>
  void fixed(T v);

  std::string out_;
  std::deque<std::string> kept_;  // names, which stay where they are
  std::unordered_map<std::string_view, std::uint64_t> names_;
  struct Open {
    std::size_t at;  // where its length lies
    Type type;
    std::uint32_t items = 0;
  };
  std::vector<Open> open_;
};

// One item. Bytes and items stay where the file lies.
struct Item {
  std::string_view name;
  Type type = Type::kNone;
  std::uint64_t number = 0;
  double real = 0;
  std::string_view content;  // bytes; of groups and lists: their items
};

// Reads items one by one, and never beyond what there is. All that is wrong is a StateError.
class TaggedReader {
 public:
  // file: stays where it is as long as it is read. The whole of it is checked first: head, length, CRC.
  explicit TaggedReader(std::string_view file);

  std::uint32_t version() const { return version_; }  // of what is saved
  // Whether the innermost group or list has no more items.
  bool at_end() const { return !peeked_ && levels_.back().left.empty(); }
  // The next item, which is left where it is.
  const Item& peek();
  // The next item. Of a group or list, what lies in it must be read too: enter() or skip() follows.
  const Item& next();
  // Into the group or list that next() has given; leave(): out of it, which must be at its end.
  void enter();
  void leave();
  // Of the list that was entered last: how many items it says it has; no more than there are bytes.
  std::size_t count() const { return levels_.back().count; }
  // Past what lies in what next() has given.
  void skip();
  // Where it is: the names of the items around, and of the last one.
  std::string path() const;
  [[noreturn]] void fail(const std::string& what) const;

  static constexpr std::size_t kDepth = 64;

 private:
  struct Level {
    std::string_view left;
    std::string_view name;    // of the group
    std::uint64_t index = 0;  // of the last item
    std::size_t count = 0;    // of a list
    bool list = false;
  };
  void read();
  std::uint64_t varint();
  std::string_view take(std::size_t len);

  std::uint32_t version_ = 0;
  std::vector<std::string_view> names_;
  std::vector<Level> levels_;
  Item item_;
  bool peeked_ = false;
};

}  // namespace hcasim::saved
#endif
