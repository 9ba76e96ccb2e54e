// SPDX-License-Identifier: BSD-3-Clause
// TOML files as users write them, read so that no text, however broken, is more than an error.
#ifndef HCASIM_MODEL_TOML_TEXT_H
#define HCASIM_MODEL_TOML_TEXT_H

#include <string>

namespace hcasim {

// The TOML that profiles and scenarios need, line by line: [section], [[section]], key = value with a number,
// a string, true or false, comments. The parser behind this meets assertions of its own on some broken texts;
// none of these passes here. rows: tables of measurements need a little more: [section.section], "a key", and
// [value, value] in one line. file: its name, for the message. False: `err` names file and line and says what
// is allowed.
bool plain_toml(const std::string& text, const std::string& file, std::string& err, bool rows = false);

// The text of a file of at most `most` bytes. False: `err` says why not.
bool read_text(const std::string& path, std::size_t most, std::string& text, std::string& err);

}  // namespace hcasim
#endif
