// SPDX-License-Identifier: GPL-2.0-or-later
// The links that lead to other ranks. What leaves on them is kept until the ranks meet, which they do at the
// end of each span of time that is no longer than any of these links: what leaves within it arrives later.
#ifndef HCASIM_FABRIC_BORDER_H
#define HCASIM_FABRIC_BORDER_H

#include <unordered_map>
#include <vector>

#include "fabric/device.h"
#include "fabric/ranks.h"

namespace hcasim::fabric {

class Border final : public Outlet {
 public:
  explicit Border(const Ranks& ranks);

  // The device is this rank's end of a link to that rank. wire: the link's number, at both ends.
  void add(unsigned wire, unsigned rank, ns3::Ptr<PortDevice> device);
  void takes(unsigned wire, FramePtr frame, Time arrives) override;

  // How far the ranks are: messages that are done, ranks in which one has failed.
  struct Progress {
    std::uint64_t done = 0, failed = 0;
  };
  // Hands over what has left, and hears what arrives. own: of this rank; returns the sum of all.
  Progress meet(const Progress& own);

 private:
  struct End {
    unsigned rank = 0;
    ns3::Ptr<PortDevice> device;
  };
  const Ranks& ranks_;
  std::unordered_map<unsigned, End> ends_;  // by wire
  std::vector<Ranks::Bytes> out_, in_;      // by rank
};

}  // namespace hcasim::fabric
#endif
