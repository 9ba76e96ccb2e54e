// SPDX-License-Identifier: BSD-3-Clause
#include "model/toml_text.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace hcasim {

namespace {

constexpr std::size_t kLongest = 4096;  // bytes of a line

// A line, looked at from left to right.
class Line {
 public:
  Line(const std::string& text, bool rows) : text_(text), rows_(rows) {}

  bool good() {
    blanks();
    if (comment()) return true;
    if (take('[')) {
      const bool twice = take('[');
      return path() && take(']') && (!twice || take(']')) && rest();
    }
    return key() && blanks() && take('=') && blanks() && (rows_ && now() == '[' ? list() : value()) && rest();
  }

 private:
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool blanks() {
    while (now() == ' ' || now() == '\t') ++at_;
    return true;
  }
  static bool printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }
  // Nothing more, or a comment. Where it begins says nothing: '#' ends what is before it.
  bool comment() {
    if (at_ == text_.size()) return true;
    if (now() != '#') return false;
    for (; at_ < text_.size(); ++at_)
      if (!printable(now()) && now() != '\t') return false;
    return true;
  }
  bool rest() { return blanks() && comment(); }
  static bool bare(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  }
  bool name() {
    const std::size_t from = at_;
    while (bare(now())) ++at_;
    return at_ != from;
  }
  bool path() {
    if (!name()) return false;
    while (rows_ && take('.'))
      if (!name()) return false;
    return true;
  }
  bool key() { return rows_ && now() == '"' ? string() : name(); }
  bool list() {
    take('[');
    do {
      if (!blanks() || !value() || !blanks()) return false;
    } while (take(','));
    return take(']');
  }
  bool digits(bool hex = false) {
    const std::size_t from = at_;
    const auto is = hex ? [](int c) { return std::isxdigit(c); } : [](int c) { return std::isdigit(c); };
    while (is(static_cast<unsigned char>(now())) != 0) ++at_;
    return at_ != from && at_ - from <= 20;
  }
  bool word(const char* w) {
    if (text_.compare(at_, std::strlen(w), w) != 0) return false;
    at_ += std::strlen(w);
    return !bare(now());
  }
  bool number() {
    if (text_.compare(at_, 2, "0x") == 0) {
      at_ += 2;
      return digits(true) && !bare(now());
    }
    if (!take('-')) take('+');
    if (now() == 'i') return word("inf");
    if (now() == 'n') return word("nan");
    if (now() == '0' && std::isdigit(static_cast<unsigned char>(at_ + 1 < text_.size() ? text_[at_ + 1] : 0)))
      return false;
    if (!digits()) return false;
    if (take('.') && !digits()) return false;
    if (now() == 'e' || now() == 'E') {
      ++at_;
      if (!take('-')) take('+');
      if (!digits()) return false;
    }
    return !bare(now()) && now() != '.';
  }
  bool string() {
    const char quote = now();
    ++at_;
    if (now() == quote && at_ + 1 < text_.size() && text_[at_ + 1] == quote) return false;  // of many lines
    while (at_ < text_.size() && now() != quote) {
      if (!printable(now())) return false;
      if (quote == '"' && take('\\')) {
        if (std::strchr("\"\\btnfr", now()) == nullptr || now() == '\0') return false;
      }
      ++at_;
    }
    return take(quote);
  }
  bool value() {
    if (now() == '"' || now() == '\'') return string();
    if (now() == 't') return word("true");
    if (now() == 'f') return word("false");
    return number();
  }

  const std::string& text_;
  const bool rows_;
  std::size_t at_ = 0;
};

// UTF-8 without overlong forms, surrogates and what lies beyond Unicode.
bool utf8(const std::string& s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    unsigned more = 0;
    unsigned long v = 0, least = 0;
    if (c < 0x80) {
      ++i;
      continue;
    }
    if (c >= 0xc2 && c < 0xe0) {
      more = 1;
      v = c & 0x1fu;
      least = 0x80;
    } else if (c >= 0xe0 && c < 0xf0) {
      more = 2;
      v = c & 0xfu;
      least = 0x800;
    } else if (c >= 0xf0 && c < 0xf5) {
      more = 3;
      v = c & 7u;
      least = 0x10000;
    } else {
      return false;
    }
    if (more >= s.size() - i) return false;
    for (unsigned k = 1; k <= more; ++k) {
      const auto d = static_cast<unsigned char>(s[i + k]);
      if ((d & 0xc0) != 0x80) return false;
      v = v << 6 | (d & 0x3fu);
    }
    if (v < least || v > 0x10ffff || (v >= 0xd800 && v < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace

bool plain_toml(const std::string& text, const std::string& file, std::string& err, bool rows) {
  unsigned number = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.size() <= kLongest && utf8(line) && Line(line, rows).good()) continue;
    err = file + ":" + std::to_string(number) +
          ": not understood; a line is [section], [[section]], key = value (a number, \"text\", true or "
          "false" +
          (rows ? ", or [values]" : "") + ") or a # comment";
    return false;
  }
  return true;
}

bool read_text(const std::string& path, std::size_t most, std::string& text, std::string& err) {
  std::FILE* f = std::fopen(path.c_str(), "rbe");
  if (f == nullptr) {
    err = path + ": " + std::strerror(errno);
    return false;
  }
  text.clear();
  char piece[4096];
  std::size_t n = 0;
  while (text.size() <= most && (n = std::fread(piece, 1, sizeof piece, f)) > 0) text.append(piece, n);
  const bool failed = std::ferror(f) != 0;
  std::fclose(f);
  if (failed) {
    err = path + ": cannot be read";
  } else if (text.size() > most) {
    err = path + ": longer than " + std::to_string(most) + " bytes";
  } else {
    return true;
  }
  return false;
}

}  // namespace hcasim
