// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/border.h"

#include <cstring>

namespace hcasim::fabric {

namespace {

// What ranks say to one another, all of one machine type: a Progress, then frames, each behind this.
struct Head {
  Time arrives = 0;
  std::uint32_t wire = 0, bytes = 0;
};

void append(Ranks::Bytes& to, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(from);
  to.insert(to.end(), at, at + bytes);
}

template <class T>
T take(const Ranks::Bytes& from, std::size_t& at) {
  T value;
  std::memcpy(&value, from.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

}  // namespace

Border::Border(const Ranks& ranks) : ranks_(ranks), out_(ranks.count(), Ranks::Bytes(sizeof(Progress))) {}

void Border::add(unsigned wire, unsigned rank, ns3::Ptr<PortDevice> device) {
  device->leads_out(*this, wire);
  ends_[wire] = {rank, device};
}

void Border::takes(unsigned wire, FramePtr frame, Time arrives) {
  Ranks::Bytes& out = out_[ends_.at(wire).rank];
  const Head head{arrives, wire, static_cast<std::uint32_t>(frame->bytes.size())};
  append(out, &head, sizeof head);
  append(out, frame->bytes.data(), frame->bytes.size());
}

Border::Progress Border::meet(const Progress& own) {
  for (Ranks::Bytes& out : out_) std::memcpy(out.data(), &own, sizeof own);
  ranks_.exchange(out_, in_);
  Progress all;
  for (const Ranks::Bytes& in : in_) {
    std::size_t at = 0;
    const auto theirs = take<Progress>(in, at);
    all.done += theirs.done;
    all.failed += theirs.failed;
    while (at < in.size()) {
      const auto head = take<Head>(in, at);
      ends_.at(head.wire).device->arrives(make_frame(in.data() + at, head.bytes), head.arrives);
      at += head.bytes;
    }
  }
  for (Ranks::Bytes& out : out_) out.resize(sizeof(Progress));
  return all;
}

}  // namespace hcasim::fabric
