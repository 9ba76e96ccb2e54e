// SPDX-License-Identifier: BSD-3-Clause
#include "card/state/tagged_text.h"

#include <cstdio>
#include <map>
#include <vector>

#include "card/state/tagged.h"
#include "prm/info.h"

namespace hcasim::saved {

namespace {

std::string hex(std::string_view bytes) {
  static const char* const digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[c & 15];
  }
  return text;
}

bool readable(std::string_view bytes) {
  for (const char c : bytes)
    if (c < ' ' || c > '~') return false;
  return !bytes.empty();
}

std::string text_of(const Item& item) {
  switch (item.type) {
    case Type::kNumber:
      return std::to_string(item.number);
    case Type::kReal: {
      char text[40];
      std::snprintf(text, sizeof text, "%.17g", item.real);
      return text;
    }
    case Type::kBytes: {
      const std::string_view bytes = item.content;
      if (const prm::StructInfo* context = prm::find_struct(item.name);
          context && context->bits == bytes.size() * 8)
        return prm::dump(*context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      if (readable(bytes)) return '"' + std::string(bytes) + '"';
      return bytes.find_first_not_of('\0') == std::string_view::npos
                 ? std::to_string(bytes.size()) + " zero bytes"
                 : hex(bytes);
    }
    case Type::kGroup:
    case Type::kList:
    case Type::kNone:
    case Type::kCount:
      break;
  }
  return "none";
}

class Lister {
 public:
  Lister(TaggedReader& from, const Line& line) : from_(from), line_(line) {}

  // All that is left of the level.
  void all(bool list) {
    for (std::size_t i = 0; !from_.at_end(); ++i) one(list ? '[' + std::to_string(i) + ']' : std::string());
  }

 private:
  void one(const std::string& index) {
    const Item item = from_.next();
    const std::size_t len = path_.size();
    if (!item.name.empty()) {
      if (len != 0) path_ += '.';
      path_ += item.name;
    }
    if (item.type != Type::kGroup && item.type != Type::kList) {
      line_(path_ + index, text_of(item));
      path_.resize(len);
      return;
    }
    from_.enter();
    if (from_.at_end()) {
      line_(path_ + index, item.type == Type::kList ? "no elements" : "nothing");
    } else if (const Item first = from_.peek();
               !index.empty() && first.type == Type::kNumber &&
               (first.name == "number" || (first.name.empty() && pair(item)))) {
      from_.next();
      path_ += '[' + std::to_string(first.number) + ']';
      all(false);
    } else {
      path_ += index;
      all(item.type == Type::kList);
    }
    from_.leave();
    path_.resize(len);
  }
  // A key and its value.
  static bool pair(const Item& item) { return item.type == Type::kList; }

  TaggedReader& from_;
  const Line& line_;
  std::string path_;
};

}  // namespace

void list(std::string_view file, const Line& line) {
  TaggedReader reader(file);
  Lister(reader, line).all(false);
}

DiffCounts diff(std::string_view first, std::string_view second,
                const std::function<void(const std::string& line)>& line) {
  std::map<std::string, std::vector<std::string>> values;
  list(first, [&](const std::string& path, const std::string& value) { values[path].push_back(value); });
  DiffCounts counts;
  std::map<std::string, std::size_t> seen;
  list(second, [&](const std::string& path, const std::string& value) {
    const auto it = values.find(path);
    const std::size_t n = seen[path]++;
    if (it == values.end() || n >= it->second.size()) {
      ++counts.only_second;
      line(path + ": only in the second one: " + value);
    } else if (it->second[n] != value) {
      ++counts.changed;
      line(path + ": " + it->second[n] + " -> " + value);
    }
  });
  for (const auto& [path, all] : values) {
    const auto it = seen.find(path);
    for (std::size_t n = it == seen.end() ? 0 : it->second; n < all.size(); ++n) {
      ++counts.only_first;
      line(path + ": only in the first one: " + all[n]);
    }
  }
  return counts;
}

std::uint32_t version_of(std::string_view file) { return TaggedReader(file).version(); }

}  // namespace hcasim::saved
