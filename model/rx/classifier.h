// SPDX-License-Identifier: BSD-3-Clause
// What a packet from the port is, and who it is for: the checks of addresses, opcodes, QPs, their states and
// P_Keys (IBTA 9.6.1, 10.9.3; A16.4, A17.9). It only looks: the receiver (rx/receiver.h) acts on what it
// says.
#ifndef HCASIM_MODEL_RX_CLASSIFIER_H
#define HCASIM_MODEL_RX_CLASSIFIER_H

#include <cstdint>

#include "model/ctx/qp.h"
#include "model/function/vports.h"
#include "model/packet/packet.h"
#include "model/port/port.h"

namespace hcasim {

class Steering;

// On an Ethernet link: is it RoCE for the function?
struct LinkVerdict {
  enum class To : std::uint8_t { kTransport, kFrames, kDrop } to = To::kTransport;
  DropReason reason{};   // kDrop
  bool decoded = false;  // it came as bytes, and has been found to be RoCE
};

// Among what has a transport header: which engine takes it, and for which QP?
struct TransportVerdict {
  enum class To : std::uint8_t {
    kDrop,
    kCnp,        // congestion control
    kMulticast,  // the QPs of its group, each asked about by itself (for_qp())
    kDcTarget,   // the responder, which finds the connection
    kRequest,    // the responder
    kAnswer      // the requester
  } to = To::kDrop;
  bool management = false;  // for QP 0 or 1: the card's own agents are asked first
  DropReason reason{};      // kDrop
  FunctionId function = 0;  // whose it is
  Qp* qp = nullptr;         // kDcTarget, kRequest, kAnswer
};
static_assert(sizeof(TransportVerdict) == 16, "goes in registers: there is one for each packet");

class Classifier {
 public:
  struct Blocks {
    const Vports& vports;
    PerFunction<Steering> steering;
  };
  explicit Classifier(const Blocks& blocks) : blocks_(blocks) {}

  // For which function a packet is; of one to a group, the first that it may be for (reaches_many()).
  FunctionId owner(const Packet& p, bool from_ethernet) const {
    return blocks_.vports.size() == 1 ? FunctionId{0} : owner_of_several(p, from_ethernet);
  }
  // Whether it may be for several functions.
  bool reaches_many(const Packet& p, bool from_ethernet) const {
    if (blocks_.vports.size() == 1 || p.internal) return false;
    return from_ethernet ? (p.dest_mac()[0] & 1) != 0 : p.dest_qpn == kMulticastQpn;
  }
  // Decodes a frame in place if it is RoCE for the function; nothing else is changed.
  LinkVerdict link(FunctionId f, Packet& p) const;
  // f: whose packet it is.
  TransportVerdict transport(FunctionId f, const Packet& p) const;
  // What becomes of a packet that is for this QP.
  TransportVerdict for_qp(Qp& qp, const Packet& p) const;

 private:
  FunctionId owner_of_several(const Packet& p, bool from_ethernet) const;
  TransportVerdict verdict(Qp& qp, const Packet& p, bool request) const;
  bool pkey_matches(const Qp& qp, const Packet& p) const;

  Blocks blocks_;
};

}  // namespace hcasim
#endif
