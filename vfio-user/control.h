// SPDX-License-Identifier: BSD-3-Clause
// What can be read and set of a card while it runs, by the names that QEMU's in-process device has for
// qom-get and qom-set: ctr-NAME, stats, sim-time, activations, ctr-state-digest, time-mode, inject, trace-on,
// trace-filter, trace-file, trace-ring, trace-dump, trace-flush, capture-file.
//
// A request is a line with a JSON object, and so is its answer:
//   {"get": "ctr-doorbells"}                          {"value": 17}
//   {"set": "inject", "value": "drop=0.01"}           {}
//   {"list": true}                                    {"names": ["activations", ...]}
//   {"save": "/a/file"}                               {}
//   {"load": "/a/file"}                               {}
//   {"cards": true}                                   {"names": ["hca0"]}
//   what is wrong                                     {"error": "..."}
// With several cards, "card": NAME says which; without, it is the first. States (save, load) are of all cards
// of the process, in files of its own machine. Whoever loads one gives the clients' guests the memory that
// they had when it was saved, while they stand still.
#ifndef HCASIM_VFIO_USER_CONTROL_H
#define HCASIM_VFIO_USER_CONTROL_H

#include <memory>
#include <string>
#include <vector>

#include "vfio-user/card.h"

namespace hcasim::vfio_user {

// The answer to a request, without its newline.
std::string control(const std::vector<std::unique_ptr<Card>>& cards, const std::string& request);

}  // namespace hcasim::vfio_user
#endif
