// SPDX-License-Identifier: BSD-3-Clause
#include "card_state.h"

#include "card/api/instance.h"
#include "card/api/simulation.h"
#include "model/state/state.h"

namespace hcasim::test {

StateListing state_of(hca_t* hca) {
  StateListing listing;
  print_state(*hca, [&](const std::string& path, const std::string& value) { listing[path] = value; });
  return listing;
}

StateListing objects_of(hca_t* hca) {
  StateListing listing;
  print_state(hca->firmware.function(hca::kPhysical), [&](const std::string& path, const std::string& value) {
    const auto has = [&](const char* part) { return path.find(part) != std::string::npos; };
    if ((has("objects.") && !has(".pool.") && !has(".given_out.")) || path == "pages.icm")
      listing[path] = value;
  });
  return listing;
}

std::uint64_t digest_of_life(hca_t* hca) { return digest_state(*hca, false); }

std::string difference(const StateListing& a, const StateListing& b) {
  std::string out;
  const auto value = [](const StateListing& listing, const std::string& path) {
    const auto it = listing.find(path);
    return it == listing.end() ? std::string("nothing") : it->second;
  };
  StateListing all = a;
  all.insert(b.begin(), b.end());
  for (const auto& [path, ignored] : all) {
    const std::string before = value(a, path), after = value(b, path);
    if (before != after) out += path + ": " + before + ", then " + after + "\n";
  }
  return out;
}

bool renew_simulation(std::int64_t now) { return api::Simulation::instance().renew(now); }

}  // namespace hcasim::test
