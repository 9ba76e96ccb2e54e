// SPDX-License-Identifier: BSD-3-Clause
// What options join of several HCAs: the two ports of a card (card=NAME) and cables within the process
// (cable=NAME). False, throughout: `why` says what is wrong.
#ifndef HCASIM_CARD_JOINS_H
#define HCASIM_CARD_JOINS_H

#include <string>

#include "card/api/instance.h"

namespace hcasim::api {

// card=NAME: which of its ports this HCA becomes, into `s`.
bool take_port(Settings& s, std::string& why);

// Tells the ports of each card of each other; a card has all of them by then.
bool complete_cards(std::string& why);

// One cable or wire a port, of the right kind for its link. A port on a wire gets a node GUID of its own into
// `s`.
bool check_cable(Settings& s, const hca_host_ops& ops, std::string& why);

// What an HCA cannot be joined to any more once simulated time runs.
bool check_late(const Settings& s, std::string& why);

// The HCA in service of that name; null: there is none.
hca* cable_peer(const std::string& name);

// A cable between two HCAs in service. Where the far end of an old one is out of service, it goes.
bool join(hca* a, hca* b, std::string& why);

// The options cable=NAME of all HCAs; both ends may say it.
bool join_cables(std::string& why);

}  // namespace hcasim::api
#endif
