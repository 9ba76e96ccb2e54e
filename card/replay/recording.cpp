// SPDX-License-Identifier: BSD-3-Clause
#include "card/replay/recording.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "model/profile.h"
#include "traces/format.h"

namespace hcasim::api {

namespace format = traces::format;

namespace {
constexpr std::uint64_t kLongest = std::uint64_t{1} << 30;  // bytes of a field; a reader refuses longer ones
constexpr std::size_t kPiece = 64 * 1024;                   // read at a time: a length may be a lie
}  // namespace

Digest::Digest(const void* bytes, std::size_t len) {
  if (len <= kWhole) {
    bytes_ = {static_cast<const char*>(bytes), len};
    return;
  }
  const std::uint64_t h = mixed(bytes, len);
  std::memcpy(made_, &h, sizeof h);
  bytes_ = {made_, sizeof made_};
}

// ---- writing ----

std::string profile_text(const Profile& profile) {
  std::string name;
  for (const char c : profile.name) {
    if (c == '"' || c == '\\') name += '\\';
    name += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  std::string out = "name = \"" + name + "\"\ngeneration = \"" + profile.generation->key + "\"\n", section;
  for (std::size_t i = 0; i < Profile::names().size(); ++i) {
    const std::string& full = Profile::names()[i];
    const std::size_t dot = full.find('.');
    if (full.substr(0, dot) != section) {
      section = full.substr(0, dot);
      out += '[' + section + "]\n";
    }
    char number[40];
    std::snprintf(number, sizeof number, "%.17g", profile.value(i));
    out += full.substr(dot + 1) + " = " + number + '\n';
  }
  return out;
}

bool Recorder::begin(const std::string& path, Time state_every, bool first, std::string& why) {
  if (path.empty()) {
    if (state_every == 0 || current_) return true;
    why = "snapshot_every: states go into a recording, and there is none: give record=FILE to the first HCA";
    return false;
  }
  if (current_) {
    if (current_->path_ == path && !current_->finished_) return true;
    why = "record=" + path + ": there is one recording a process, and it is " + current_->path_;
    return false;
  }
  if (!first) {
    why = "record=" + path + ": give it to the first HCA: all of the process are recorded from there on";
    return false;
  }
  auto stream = traces::StreamWriter::create(path, kRecordingMagic, kRecordingVersion, &why);
  if (!stream) {
    why = "record=" + path + ": " + why;
    return false;
  }
  // Never deleted: HCAs may be taken out of service as late as at exit.
  current_ = new Recorder(path, std::move(stream), state_every);
  current_->note(Event::kHello, std::uint64_t{HCA_API_VERSION});
  return true;
}

void Recorder::finish() {
  if (finished_) return;
  note(Event::kEnd, events_);
  finished_ = true;
  stream_->finish();
}

void Recorder::add(std::uint64_t number) {
  std::uint8_t bytes[format::kMaxVarint];
  const std::uint8_t* end = format::put_varint(bytes, number);
  record_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
}

void Recorder::add(std::string_view bytes) {
  add(std::uint64_t{bytes.size()});
  if (bytes.size() >= ChunkStore::kShortest) return add_chunks(bytes);
  record_.append(bytes);
}

void Recorder::add_chunks(std::string_view bytes) {
  const std::size_t end = ChunkStore::last(bytes.size());
  std::size_t said = 0;
  for (std::size_t at = ChunkStore::first(bytes.size()); at < end; at += ChunkStore::kChunk) {
    const std::size_t run = at;
    slots_.clear();
    for (; at < end; at += ChunkStore::kChunk) {
      const char* chunk = bytes.data() + at;
      const std::uint64_t slot = ChunkStore::slot_of(chunk);
      if (!known_.holds(slot, chunk)) {
        known_.put(slot, chunk);
        break;
      }
      slots_.push_back(slot);
    }
    if (slots_.empty()) continue;
    add(std::uint64_t{run - said});
    record_.append(bytes.substr(said, run - said));
    add(std::uint64_t{slots_.size()});
    for (const std::uint64_t slot : slots_) add(slot);
    said = at;
  }
  add(std::uint64_t{bytes.size() - said});
  record_.append(bytes.substr(said));
}

void Recorder::add(At time) {
  add(format::zigzag(
      static_cast<std::int64_t>(static_cast<std::uint64_t>(time.ns) - static_cast<std::uint64_t>(time_))));
  time_ = time.ns;
}

// ---- reading ----

bool RecordingReader::open(const std::string& path, std::string& err) {
  if (!stream_.open(path, kRecordingMagic, kRecordingVersion, &err)) {
    if (err.find("does not begin with") != std::string::npos)
      err += "; a recording is what hcasim boot --record FILE makes";
    return false;
  }
  Noted hello;
  if (!next(hello) || hello.event != Event::kHello) {
    err = path + ": holds nothing";
    return false;
  }
  if (hello.numbers[0] < kOldestApi || hello.numbers[0] > HCA_API_VERSION) {
    err = path + ": made with version " + std::to_string(hello.numbers[0]) +
          " of the C API; this program takes versions " + std::to_string(kOldestApi) + " to " +
          std::to_string(HCA_API_VERSION);
    return false;
  }
  return true;
}

bool RecordingReader::damaged(const char* what) {
  warning_ = stream_.warning().empty() ? std::string("it is damaged: ") + what : stream_.warning();
  return false;
}

bool RecordingReader::number(std::uint64_t& out) {
  out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    std::uint8_t b = 0;
    if (!stream_.read(b)) return damaged("it ends within a record");
    if (shift == 63 && b > 1) break;
    out |= static_cast<std::uint64_t>(b & 0x7f) << shift;
    if ((b & 0x80) == 0) return true;
  }
  return damaged("a number has too many bits");
}

bool RecordingReader::bytes(std::string& out) {
  std::uint64_t len = 0;
  out.clear();
  if (!number(len)) return false;
  if (len > kLongest) return damaged("a field is too long");
  return len < ChunkStore::kShortest ? plain(out, len) : chunks(out, len);
}

// Puts so many bytes behind those that are there.
bool RecordingReader::plain(std::string& out, std::uint64_t len) {
  const std::uint64_t end = out.size() + len;
  while (out.size() < end) {
    const std::size_t had = out.size();
    out.resize(std::min<std::uint64_t>(end, had + kPiece));
    if (!stream_.read(out.data() + had, out.size() - had)) return damaged("it ends within a record");
  }
  return true;
}

bool RecordingReader::chunks(std::string& out, std::uint64_t len) {
  const std::size_t end = ChunkStore::last(len);
  std::size_t seen = ChunkStore::first(len);
  for (;;) {
    std::uint64_t bytes = 0, known = 0;
    if (!number(bytes)) return false;
    if (bytes > len - out.size()) return damaged("more bytes than the field has");
    if (!plain(out, bytes)) return false;
    for (; seen < end && seen + ChunkStore::kChunk <= out.size(); seen += ChunkStore::kChunk)
      known_.put(ChunkStore::slot_of(out.data() + seen), out.data() + seen);
    if (out.size() == len) return true;
    if (!number(known)) return false;
    if (seen != out.size() || known > (end - seen) / ChunkStore::kChunk)
      return damaged("chunks where there are none");
    for (; known != 0; --known) {
      std::uint64_t slot = 0;
      if (!number(slot)) return false;
      if (slot >= ChunkStore::kSlots) return damaged("no such chunk");
      out.append(reinterpret_cast<const char*>(known_.at(slot)), ChunkStore::kChunk);
    }
    seen = out.size();
  }
}

bool RecordingReader::next(Noted& out) {
  if (!warning_.empty()) return false;
  std::uint8_t event = 0;
  if (!stream_.read(event)) return damaged("it has no end");
  if (event >= kEvents) return damaged("an unknown event");
  out.event = static_cast<Event>(event);
  std::size_t numbers = 0, texts = 0;
  out.numbers = {};
  for (std::string& text : out.texts) text.clear();
  for (const char field : info(out.event).fields) {
    if (field == 's') {
      if (!bytes(out.texts[texts++])) return false;
      continue;
    }
    std::uint64_t& n = out.numbers[numbers++];
    if (!number(n)) return false;
    if (field == 't') {
      n = static_cast<std::uint64_t>(time_) + static_cast<std::uint64_t>(format::unzigzag(n));
      time_ = static_cast<std::int64_t>(n);
    }
  }
  return true;
}

std::string Noted::text() const {
  std::string out, fields;
  std::size_t numbers_used = 0, texts_used = 0;
  for (const char field : info(event).fields) {
    char piece[40];
    if (field == 's') {
      const std::string& bytes = texts[texts_used++];
      const bool plain = bytes.size() <= 200 &&
                         std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c <= '~'; });
      fields += fields.empty() ? "" : ", ";
      if (plain) {
        fields += '"' + bytes + '"';
        continue;
      }
      fields += std::to_string(bytes.size()) + " bytes";
      const std::size_t shown = std::min(bytes.size(), Digest::kWhole);
      for (std::size_t i = 0; i < shown; ++i) {
        std::snprintf(piece, sizeof piece, "%s%02x",
                      i == 0       ? ": "
                      : i % 4 == 0 ? " "
                                   : "",
                      static_cast<unsigned char>(bytes[i]));
        fields += piece;
      }
      if (shown < bytes.size()) fields += "...";
      continue;
    }
    const auto n = static_cast<unsigned long long>(numbers[numbers_used++]);
    if (field == 'h' && out.empty()) {
      out = "hca" + std::to_string(hca_of(n));
      if (function_of(n) != 0) out += '.' + std::to_string(function_of(n));
      out += ' ';
      continue;
    }
    std::snprintf(piece, sizeof piece, field == 't' || n < 4096 ? "%llu" : "0x%llx", n);
    fields += (fields.empty() ? "" : ", ") + std::string(piece);
  }
  return out + info(event).name + "(" + fields + ")";
}

}  // namespace hcasim::api
