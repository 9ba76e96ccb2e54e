// SPDX-License-Identifier: BSD-3-Clause
// The walk through entries of steering formats 1 and 2.
#include <algorithm>
#include <cstring>

#include "model/steer/lookup_time.h"
#include "model/steer/ste.h"

namespace hcasim {

namespace {

using prm::SteFormatV1;
using prm::SteV1;
using prm::SteV1Action;
using prm::SteV1Anchor;

constexpr unsigned kWord = 2;  // what sizes and offsets of actions count

std::uint64_t miss_of_v1(const std::uint8_t* ste) {
  return static_cast<std::uint64_t>(prm::get<SteV1::miss_39_32>(ste)) << 32 |
         static_cast<std::uint64_t>(prm::get<SteV1::miss_31_6>(ste)) << 6;
}

// As in format 0, but there may be none that an entry leads to when it fits.
struct NextV1 {
  std::uint64_t base = 0, entries = 0;
  bool none = false;
};
NextV1 next_v1(const std::uint8_t* ste) {
  constexpr std::uint64_t kNone = (std::uint64_t{1} << 35) - 1;
  const std::uint64_t v = static_cast<std::uint64_t>(prm::get<SteV1::next_base_39_32>(ste)) << 27 |
                          prm::get<SteV1::next_base_31_5>(ste);
  NextV1 t;
  t.none = v == kNone;
  t.entries = v & (~v + 1);
  t.base = (v ^ t.entries) << 5;
  return t;
}

unsigned format_of(const std::uint8_t* ste) { return prm::get<SteV1::format>(ste); }
bool is_match(const std::uint8_t* ste) {
  return format_of(ste) == static_cast<unsigned>(SteFormatV1::kMatch);
}
// With room for three double words of actions, and none for what the next table's hash is made of, unless it
// is a match's.
bool is_long(const std::uint8_t* ste) {
  return format_of(ste) >= static_cast<unsigned>(SteFormatV1::kLongByte);
}

// Byte offset of an anchor; false: the frame has no such header.
bool anchor_at(const SteeredFrame& frame, unsigned anchor, std::uint32_t& at) {
  const FrameHeaders& h = frame.headers;
  switch (static_cast<SteV1Anchor>(anchor)) {
    case SteV1Anchor::kStart:
    case SteV1Anchor::kMac:
      at = 0;
      return true;
    case SteV1Anchor::kFirstVlan:
      at = kEthHeader - 2;
      return h.tags != 0;
    case SteV1Anchor::kIp:
      at = h.outer.l3;
      return h.outer.version != 0;
    case SteV1Anchor::kTcpUdp:
      at = h.outer.l4;
      return h.outer.tcp || h.outer.udp;
    case SteV1Anchor::kInnerMac:
      at = h.inner_l2;
      return h.inner_l2 != 0;
    case SteV1Anchor::kInnerIp:
      at = h.inner.l3;
      return h.inner.version != 0;
  }
  return false;
}

// Bytes of an action in an entry.
unsigned size_of(unsigned id) {
  switch (id) {
    case SteV1Action::kCopy:
    case SteV1Action::kSet:
    case SteV1Action::kAdd:
    case SteV1Action::kInsertInline:
    case SteV1Action::kInsertPointer:
    case SteV1Action::kAcceleratedList:
    case SteV1Action::kAso:
      return SteV1Action::kDouble;
    default:
      return SteV1Action::kSingle;
  }
}

// Of a list, be it a pattern with arguments or not.
unsigned rewriting_actions(const std::uint8_t* list) {
  return prm::get<SteV1Action::id>(list) == SteV1Action::kAcceleratedList
             ? prm::get<SteV1Action::pattern_count>(list)
             : prm::get<SteV1Action::list_count>(list);
}

// Headers away, up to an anchor. What does not belong to the packet that is left goes as well.
bool remove_headers(const std::uint8_t* action, SteeredFrame& frame) {
  const FrameHeaders& h = frame.headers;
  const auto to = static_cast<SteV1Anchor>(prm::get<SteV1Action::end_anchor>(action));
  std::uint32_t at = 0;
  if (prm::get<SteV1Action::start_anchor>(action) != 0) return false;
  switch (to) {
    case SteV1Anchor::kInnerMac:
      return decapsulate_l2(frame);
    case SteV1Anchor::kInnerIp:
      return anchor_at(frame, static_cast<unsigned>(to), at) && keep_bytes(frame, at, h.inner.end);
    case SteV1Anchor::kIp:
      return anchor_at(frame, static_cast<unsigned>(to), at) && keep_bytes(frame, at, h.outer.end);
    default:
      return false;
  }
}

bool remove_by_size(const std::uint8_t* action, SteeredFrame& frame) {
  const unsigned anchor = prm::get<SteV1Action::start_anchor>(action);
  const std::uint32_t bytes = kWord * prm::get<SteV1Action::remove_size>(action);
  std::uint32_t at = 0;
  if (!anchor_at(frame, anchor, at))
    return anchor == static_cast<unsigned>(SteV1Anchor::kFirstVlan);  // no tag: the frame stays as it is
  std::uint32_t size = bytes;
  if (anchor == static_cast<unsigned>(SteV1Anchor::kFirstVlan))
    size = std::min(size, kVlanTag * frame.headers.tags);
  return remove_bytes(frame, at + kWord * prm::get<SteV1Action::remove_offset>(action), size);
}

bool insert_inline(const std::uint8_t* action, SteeredFrame& frame) {
  std::uint32_t at = 0;
  return anchor_at(frame, prm::get<SteV1Action::start_anchor>(action), at) &&
         insert_bytes(frame, at + kWord * prm::get<SteV1Action::insert_offset>(action), action + 4, 4);
}

}  // namespace

// The tags of a frame as it is, by lookup; and by definer for entries that match without a mask.
struct SteWalker::TagsV1 {
  static constexpr unsigned kLookups = 0x20;

  const SteeredFrame& frame;
  const SteSource& source;
  SteObjects& objects;
  std::uint64_t made = 0;
  std::array<SteTag, 2 * kLookups> tags;
  std::uint32_t defined = 0;  // the definer that `match` is made by; 0: none
  std::array<std::uint8_t, prm::kSteV1MatchTagBytes> match{};

  const SteTag* get(unsigned format, unsigned definer) {
    if (format > static_cast<unsigned>(SteFormatV1::kDword) || definer >= kLookups) return nullptr;
    const unsigned index = format * kLookups + definer;
    const std::uint64_t bit = std::uint64_t{1} << index;
    if (!(made & bit) &&
        !make_ste_tag(static_cast<prm::SteV1Lookup>(format << 8 | definer), frame, source, tags[index]))
      return nullptr;
    made |= bit;
    return &tags[index];
  }
  const std::uint8_t* get_match(unsigned definer) {
    if (defined == definer) return match.data();
    const MatchDefiner* d = objects.definer(definer);
    if (!d) return nullptr;
    std::memcpy(match.data(), d->tag(frame, source).data() + MatchDefiner::kFields, match.size());
    defined = definer;
    return match.data();
  }
  void forget() { made = 0, defined = 0; }
};

SteEnd SteWalker::walk_v1(std::uint64_t address, bool receive, SteeredFrame& frame, const SteSource& source,
                          unsigned& work, LookupTime* time) const {
  TagsV1 tags{frame, source, objects_, 0, {}, 0, {}};
  while (spend(work, kEntryWork)) {
    SteEnd end;
    if (leads_out(address, receive, end)) return end;
    const std::uint8_t* ste = icm_.line(address);
    if (!ste) return {};
    if (time) frame.at = time->look_up(frame.at, LookupTime::software_line(address));
    bool fits = true;
    const unsigned definer = prm::get<SteV1::definer>(ste);
    if (!is_match(ste)) {
      constexpr auto kLong = static_cast<unsigned>(SteFormatV1::kLongByte);
      const SteTag* tag = tags.get(is_long(ste) ? format_of(ste) - kLong : format_of(ste), definer);
      if (!tag) return {};
      for (unsigned i = 0; i < tag->size(); ++i)
        fits &= ((*tag)[i] & ste[prm::kSteV1Mask + i]) == ste[prm::kSteV1Tag + i];
    } else if (definer != SteV1::kAnyDefiner) {
      const std::uint8_t* tag = tags.get_match(definer);
      if (!tag) return {};
      fits = std::memcmp(tag, ste + prm::kSteV1MatchTag, prm::kSteV1MatchTagBytes) == 0;
    }
    const NextV1 next = next_v1(ste);
    if (!fits || next.none) {
      address = miss_of_v1(ste);
      continue;
    }
    if (!act_v1(ste, frame, tags, work, time) || next.entries == 0) return {};
    std::uint32_t index = 0;
    const unsigned hashed = prm::get<SteV1::hash_definer>(ste);
    if (next.entries > 1 && is_match(ste)) {
      const std::uint8_t* key = tags.get_match(hashed);
      if (!key) return {};
      index = ste_hash(key, prm::kSteV1MatchTagBytes, next.entries);
    } else if (next.entries > 1) {
      if (is_long(ste)) return {};
      const SteTag* key = tags.get(prm::get<SteV1::next_format>(ste), hashed);
      if (!key) return {};
      index = ste_hash(*key, prm::get<SteV1::byte_mask>(ste), next.entries);
    }
    address = next.base + std::uint64_t{kIcmLine} * index;
  }
  return {};
}

bool SteWalker::act_v1(const std::uint8_t* ste, SteeredFrame& frame, TagsV1& tags, unsigned& work,
                       const LookupTime* time) const {
  if (const std::uint32_t counter = prm::get<SteV1::counter>(ste)) objects_.count(counter, frame.len());
  const std::uint8_t* action = ste + (is_long(ste) ? SteV1::kLongActions : SteV1::kActions);
  unsigned left = is_long(ste) ? SteV1::kLongActionBytes : SteV1::kActionBytes;
  while (left != 0) {
    const unsigned id = prm::get<SteV1Action::id>(action), size = size_of(id);
    if (size > left) return false;
    if (id == SteV1Action::kFlowTag) {
      frame.flow_tag = prm::get<SteV1Action::flow_tag>(action);
    } else if (id == SteV1Action::kModifyList || id == SteV1Action::kAcceleratedList) {
      if (!spend(work, kChangeWork + rewriting_actions(action)) || !rewrite_v1(action, frame)) return false;
      if (time) frame.at = time->rewrite(frame.at);
      tags.forget();
    } else if (id != SteV1Action::kNop) {
      if (!spend(work, kChangeWork) || !change_v1(action, frame)) return false;
      if (time) frame.at = time->reformat(frame.at);
      tags.forget();
    }
    action += size;
    left -= size;
  }
  return true;
}

bool SteWalker::rewrite_v1(const std::uint8_t* list, SteeredFrame& frame) const {
  const bool by_pattern = prm::get<SteV1Action::id>(list) == SteV1Action::kAcceleratedList;
  const std::uint64_t start =
      by_pattern ? SwIcm::patterns() + std::uint64_t{kIcmLine} * prm::get<SteV1Action::pattern_pointer>(list)
                 : SwIcm::base(SwIcm::kHeaderModify) +
                       std::uint64_t{kIcmLine} * prm::get<SteV1Action::list_pointer>(list);
  const std::uint32_t count = rewriting_actions(list);
  constexpr std::uint32_t kBytes = SteV1Action::kDouble, kInLine = kIcmLine / kBytes;
  const std::uint8_t *line = nullptr, *arguments = nullptr;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i % kInLine == 0) {
      line = icm_.line(start + std::uint64_t{i} * kBytes);
      if (by_pattern)
        arguments = objects_.header_arguments(prm::get<SteV1Action::argument_pointer>(list) + i / kInLine);
    }
    if (!line || (by_pattern && !arguments)) return false;
    std::array<std::uint8_t, kBytes> action;
    const std::size_t at = i % kInLine * kBytes;
    for (std::size_t b = 0; b < kBytes; ++b)
      action[b] = static_cast<std::uint8_t>(line[at + b] | (arguments ? arguments[at + b] : 0u));
    if (!change_v1(action.data(), frame)) return false;
  }
  return true;
}

bool SteWalker::insert_v1(const std::uint8_t* action, SteeredFrame& frame) const {
  const bool tunnel = prm::get<SteV1Action::attributes>(action) == SteV1Action::kInsertTunnel;
  const std::uint32_t id = prm::get<SteV1Action::data>(action);
  const std::vector<std::uint8_t>* bytes = tunnel ? objects_.tunnel_header(id) : objects_.inserted_bytes(id);
  // The size stands in six bits.
  if (bytes == nullptr || (bytes->size() / kWord & 0x3f) != prm::get<SteV1Action::insert_size>(action))
    return false;
  std::uint32_t at = 0;
  if (!anchor_at(frame, prm::get<SteV1Action::start_anchor>(action), at)) return false;
  at += kWord * prm::get<SteV1Action::insert_offset>(action);
  const auto len = static_cast<std::uint32_t>(bytes->size());
  if (tunnel) return at == 0 && encapsulate(frame, bytes->data(), len, EncapOf::kL2);
  return prm::get<SteV1Action::attributes>(action) == 0 && insert_bytes(frame, at, bytes->data(), len);
}

bool SteWalker::change_v1(const std::uint8_t* action, SteeredFrame& frame) const {
  switch (prm::get<SteV1Action::id>(action)) {
    case SteV1Action::kNop:
      return true;
    case SteV1Action::kCopy:
    case SteV1Action::kSet:
    case SteV1Action::kAdd:
      return rewrite_header_v1(action, format_, frame);
    case SteV1Action::kRemoveBySize:
      return remove_by_size(action, frame);
    case SteV1Action::kRemoveHeaders:
      return remove_headers(action, frame);
    case SteV1Action::kInsertInline:
      return insert_inline(action, frame);
    case SteV1Action::kInsertPointer:
      return insert_v1(action, frame);
    case SteV1Action::kAso:
      return prm::get<SteV1Action::aso_type>(action) == SteV1Action::kAsoMeter &&
             objects_.measure(prm::get<SteV1Action::aso_object>(action),
                              prm::get<SteV1Action::meter_line>(action),
                              prm::get<SteV1Action::meter_color>(action),
                              2 * prm::get<SteV1Action::aso_register>(action) + 1, frame);
    default:
      return false;
  }
}

}  // namespace hcasim
