// SPDX-License-Identifier: GPL-2.0-or-later
// A table of a TOML file, read key by key. What is wrong is thrown as a ScenarioError: file, line, key, what
// is allowed.
#ifndef HCASIM_FABRIC_TOML_SECTION_H
#define HCASIM_FABRIC_TOML_SECTION_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// Some wrong keys are found by an assertion of the parser alone, which is there in builds without NDEBUG:
// what it goes on to without is an error like others.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

namespace hcasim::fabric {

class ScenarioError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Section {
 public:
  // name: as messages have it, such as "[switch]"; may be empty for the file itself.
  // The table outlives it: where a value stood is lost in a copy.
  Section(std::string file, const toml::table& table, std::string name);

  bool has(const std::string& key);
  std::uint64_t whole(const std::string& key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high);
  // Without a fallback: it must be there.
  std::uint64_t whole(const std::string& key, std::uint64_t low, std::uint64_t high);
  double real(const std::string& key, double fallback, double low, double high);
  bool flag(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  // One of several words. fallback empty: it must be there.
  std::string word(const std::string& key, const std::string& fallback,
                   const std::vector<std::string>& allowed);
  std::vector<std::uint64_t> wholes(const std::string& key, const std::vector<std::uint64_t>& fallback,
                                    std::uint64_t low, std::uint64_t high);
  // Tables: one, none if it is not there; several ([[key]]), or the only one ([key]).
  Section table(const std::string& key);
  std::vector<Section> tables(const std::string& key);
  // Behind the last key: any that nobody has asked for is wrong.
  void done();
  [[noreturn]] void fail(const std::string& key, const std::string& what);
  // It has to be there, and is not: so is said, and which key of the table looks like it. wanted: "; ...", or
  // empty.
  [[noreturn]] void missing(const std::string& key, const std::string& wanted);
  // Where a key stands, as messages begin: "FILE:LINE: [switch] KEY". Of one that is not there: its table's.
  std::string place(const std::string& key) const;

 private:
  const toml::node* find(const std::string& key);
  std::string at(const toml::node& node) const;  // "FILE:LINE: "
  std::string label(const std::string& key) const { return name_.empty() ? key : name_ + " " + key; }

  std::string file_;
  const toml::table* table_;
  std::string name_;
  std::vector<std::string> known_;
};

}  // namespace hcasim::fabric
#endif
