// SPDX-License-Identifier: BSD-3-Clause
// Steering by tables that software has written into SW ICM (steering formats 0 to 2): from an entry to the
// next by hash, along the misses of those that do not match, doing what those that match say, until an
// address leads out of it.
#ifndef HCASIM_MODEL_STEER_STE_H
#define HCASIM_MODEL_STEER_STE_H

#include <cstdint>
#include <vector>

#include "model/generation.h"
#include "model/steer/actions.h"
#include "model/steer/definer.h"
#include "model/steer/icm.h"
#include "model/steer/ste_tag.h"

namespace hcasim {

class LookupTime;

// What entries refer to by number; whoever has these objects.
class SteObjects {
 public:
  virtual void count(std::uint32_t counter, std::uint32_t bytes) = 0;  // nothing if there is none
  // The header that a reformat context puts before frames; null: there is none.
  virtual const std::vector<std::uint8_t>* tunnel_header(std::uint32_t reformat) = 0;
  // The bytes that one puts into frames (INSERT_HDR); formats after the first.
  virtual const std::vector<std::uint8_t>* inserted_bytes(std::uint32_t) { return nullptr; }
  // Of entries that match without a mask (formats after the first); null: there is none.
  virtual const MatchDefiner* definer(std::uint32_t) { return nullptr; }
  // 64 bytes of a list's arguments (formats after the first); null: there are none of that number.
  virtual const std::uint8_t* header_arguments(std::uint32_t) { return nullptr; }
  // A meter colours the frame: the colour into the low byte of that register C. False: there is none.
  virtual bool measure(std::uint32_t /*object*/, unsigned /*meter*/, unsigned /*before*/, unsigned /*reg*/,
                       SteeredFrame&) {
    return false;
  }

 protected:
  ~SteObjects() = default;
};

struct SteEnd {
  // kLost: entries lead nowhere (bad address, type or lookup; too many; an action that failed). The frame is
  // discarded.
  enum Fate : std::uint8_t { kLost, kDropped, kOut } fate = kLost;
  IcmTarget to;  // kOut: TX allow, a TIR, a table, a sampler, a meter, a vport
};

class SteWalker {
 public:
  // What one frame may cost: entries looked at, and for those that change the frame, kChangeWork and each of
  // their rewriting actions. Entries of software may lead in circles.
  static constexpr unsigned kMaxWork = 1u << 16, kChangeWork = 16;

  SteWalker(const SwIcm& icm, SteObjects& objects, SteFormat format = SteFormat::kConnectX5)
      : icm_(icm), objects_(objects), format_(format) {}

  // `address`: of an entry in SW ICM, or of what lies elsewhere. The frame is changed on the way.
  // `work` of the frame is left, and is taken from it. time: what entries take of it; null: nothing.
  SteEnd walk(std::uint64_t address, bool receive, SteeredFrame& frame, const SteSource& source,
              unsigned& work, LookupTime* time = nullptr) const;
  SteEnd walk(std::uint64_t address, bool receive, SteeredFrame& frame, const SteSource& source) const {
    unsigned work = kMaxWork;
    return walk(address, receive, frame, source, work);
  }

 private:
  static constexpr unsigned kEntryWork = 4;  // of looking at an entry: 2^14 of them is what a frame gets
  // False: not as much is left.
  static bool spend(unsigned& work, unsigned amount) {
    if (work < amount) return false;
    work -= amount;
    return true;
  }
  // An address of something else than an entry: where the walk ends.
  static bool leads_out(std::uint64_t address, bool receive, SteEnd& end);

  struct Tags;  // those of the frame as it is, by lookup
  bool act(const std::uint8_t* ste, bool receive, SteeredFrame& frame, Tags& tags, unsigned& work,
           const LookupTime* time) const;
  bool tunnel(const std::uint8_t* ste, SteeredFrame& frame) const;
  bool rewrite(const std::uint8_t* ste, SteeredFrame& frame) const;
  bool send(const std::uint8_t* ste, SteeredFrame& frame) const;

  // Formats 1 and 2.
  struct TagsV1;
  SteEnd walk_v1(std::uint64_t address, bool receive, SteeredFrame& frame, const SteSource& source,
                 unsigned& work, LookupTime* time) const;
  bool act_v1(const std::uint8_t* ste, SteeredFrame& frame, TagsV1& tags, unsigned& work,
              const LookupTime* time) const;
  // With arguments, each action is what stands in the pattern and in these together.
  bool rewrite_v1(const std::uint8_t* list, SteeredFrame& frame) const;
  bool change_v1(const std::uint8_t* action, SteeredFrame& frame) const;
  bool insert_v1(const std::uint8_t* action, SteeredFrame& frame) const;

  const SwIcm& icm_;
  SteObjects& objects_;
  SteFormat format_;
};

// One action of a rewriting list (8 bytes, prm::SteAction) on the frame. False: no such action or field.
bool rewrite_header(const std::uint8_t* action, SteeredFrame& frame);
// Set, add and copy of formats 1 and 2 (prm::SteV1Action).
bool rewrite_header_v1(const std::uint8_t* action, SteFormat format, SteeredFrame& frame);

}  // namespace hcasim
#endif
