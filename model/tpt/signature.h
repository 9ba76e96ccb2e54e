// SPDX-License-Identifier: BSD-3-Clause
// Signature offload: keys whose memory, or wire, carries a signature behind each block of data (T10-DIF with
// CRC or IP checksum, CRC32). A transfer through such a key checks, strips, makes or copies signatures on its
// way. Addresses of the key count bytes as they are on the wire.
#ifndef HCASIM_MODEL_TPT_SIGNATURE_H
#define HCASIM_MODEL_TPT_SIGNATURE_H

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/state/fields.h"

namespace hcasim {

enum class SigType : std::uint8_t { kNone, kT10Crc, kT10Checksum, kCrc32 };
constexpr std::uint64_t kLongestSigBlock = 1u << 30;  // bytes

// One side of a key.
struct SigDomain {
  SigType type = SigType::kNone;
  std::uint64_t block = ~0ULL;  // bytes of data before each signature
  std::uint32_t psv = 0;
  bool seed_ones = false;
  std::uint16_t app = 0, app_mask = 0xffff;
  std::uint32_t ref = 0;
  bool ref_increments = false, app_escape = false, app_ref_escape = false;

  unsigned bytes() const { return type == SigType::kNone ? 0 : type == SigType::kCrc32 ? 4 : 8; }
  std::uint64_t unit() const { return block + bytes(); }
  // Bytes of data in front of byte `off` of the stream, and the stream's length with d bytes of data (the
  // last block's signature included when it is whole).
  std::uint64_t data(std::uint64_t off) const;
  std::uint64_t encoded(std::uint64_t d) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, type, block, psv, seed_ones, app, app_mask, ref, ref_increments, app_escape,
                  app_ref_escape);
    if constexpr (Archive::kLoads)
      a.check(
          type <= SigType::kCrc32 && (type == SigType::kNone || (block != 0 && block <= kLongestSigBlock)),
          "there is no such block of data with a signature");
  }
};

// A running guard.
class Guard {
 public:
  void start(const SigDomain& d);
  void add(const SigDomain& d, const std::uint8_t* p, std::size_t n);
  // The signature of block `number` as it lies behind the data; returns its length.
  unsigned finish(const SigDomain& d, std::uint64_t number, std::uint8_t* out) const;
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, value_, odd_);
  }

 private:
  std::uint32_t value_ = 0;
  bool odd_ = false;  // checksum: half a word is in
};

struct SigError {
  bool memory = false;  // the domain
  std::uint16_t syndrome = 0;
  std::uint64_t expected = 0, actual = 0;  // guard or CRC, application tag, reference tag from the high end
  std::uint64_t offset = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, memory, syndrome, expected, actual, offset);
  }
};

// What a UMR set: both sides, what is checked of the incoming signatures and copied of them.
struct SigFormat {
  SigDomain mem, wire;
  bool same = false;  // same block structure: signatures may be copied
  std::uint8_t check = 0, copy = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, mem, wire, same, check, copy);
    if constexpr (Archive::kLoads)
      a.check(!same || (mem.bytes() != 0 && mem.bytes() == wire.bytes() && mem.block == wire.block),
              "both sides do not have the same blocks");
  }
};
// False: malformed, or of a kind that is not offered.
bool read_bsf(const std::uint8_t* bsf, SigFormat& out);

// Turns one stream into the other, in pieces of any size.
class SigStream {
 public:
  // Goes on at d bytes of data, which is the start of a block of both sides.
  void start(const SigFormat& f, bool to_wire, std::uint64_t d);
  // At d anywhere: the block that it is in is not checked.
  void start_blind(const SigFormat& f, bool to_wire, std::uint64_t in_off);
  void stop() { running_ = false; }
  bool running() const { return running_; }
  std::uint64_t in() const { return in_off_; }
  std::uint64_t out() const { return out_off_; }
  // How many bytes the next piece of the input may have at most to be all data, or all signature.
  std::uint64_t piece() const;
  bool in_signature() const { return in_pos_ >= from_.block; }
  bool at_signature() const { return from_.bytes() != 0 && in_pos_ == from_.block; }
  void push(const SigFormat& f, const std::uint8_t* p, std::size_t n, std::vector<std::uint8_t>& out);
  // Whether it can go on, with the format that it began with.
  bool goes_with(const SigFormat& f) const;
  // The first mismatch since it was taken last.
  std::optional<SigError> take_error() {
    auto e = error_;
    error_.reset();
    return e;
  }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, running_, to_wire_, blind_, from_, to_, in_off_, out_off_, in_pos_, in_block_, out_pos_,
                  out_block_, in_guard_, out_guard_, got_, error_);
  }

 private:
  void data(const SigFormat& f, const std::uint8_t* p, std::size_t n, std::vector<std::uint8_t>& out);
  void signature(const SigFormat& f, std::vector<std::uint8_t>& out);
  void close_out(const SigFormat& f, const std::uint8_t* incoming, std::vector<std::uint8_t>& out);

  bool running_ = false, to_wire_ = false, blind_ = false;
  SigDomain from_, to_;
  std::uint64_t in_off_ = 0, out_off_ = 0;
  std::uint64_t in_pos_ = 0, in_block_ = 0, out_pos_ = 0, out_block_ = 0;
  Guard in_guard_, out_guard_;
  std::array<std::uint8_t, 8> got_{};
  std::optional<SigError> error_;
};

// A key's signature state.
struct MkeySignature {
  unsigned room = 0;     // octowords of BSF that the key has room for (mkc.bsf_octword_size)
  bool enabled = false;  // mkc.bsf_en
  bool set = false;      // a UMR has brought the format
  SigFormat format;
  bool reported =
      false;  // an error has been reported; the next one is reported when a UMR has taken note of it
  SigStream tx, rx;
  std::uint64_t psv_epoch = 0;     // of the streams
  std::vector<std::uint8_t> left;  // tx: made and not asked for yet

  bool active() const { return enabled && set; }
  // Bytes [off, off + len) as on the wire: where they lie in memory.
  void to_memory(std::uint64_t& off, std::uint64_t& len) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, room, enabled, set, format, reported, tx, rx, psv_epoch, left);
    if constexpr (Archive::kLoads)
      a.check(tx.goes_with(format) && rx.goes_with(format), "a stream does not agree with its key's format");
  }
};

// Protection signature variables: what a stream starts from.
class PsvTable {
 public:
  struct Psv {
    std::uint32_t pd = 0;
    std::uint32_t seed = 0, ref_tag = 0;
    std::uint64_t epoch = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, pd, seed, ref_tag, epoch);
    }
  };
  Psv* find(std::uint32_t n) {
    const auto it = table_.find(n);
    return it != table_.end() ? &it->second : nullptr;
  }
  void create(std::uint32_t n, std::uint32_t pd) { table_[n].pd = pd; }
  void destroy(std::uint32_t n) { table_.erase(n); }
  void clear() { table_.clear(); }
  bool set(std::uint32_t n, std::uint32_t pd, std::uint32_t seed, std::uint32_t ref_tag);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, table_, epoch_);
  }

 private:
  std::map<std::uint32_t, Psv> table_;
  std::uint64_t epoch_ = 0;
};

}  // namespace hcasim
#endif
