// SPDX-License-Identifier: BSD-3-Clause
// Subnet administration by the built-in subnet manager (IBTA chapter 15): paths between the ports that it
// knows, which are its own and the one at the other end of the cable, with the virtual functions that it
// knows at them (those of other cards once they have asked for something), and multicast groups. Requests
// come to QP1 of the port at whose LID the manager is; what it does not answer goes on to the driver's QP1,
// where a subnet manager of the host may listen.
#ifndef HCASIM_FIRMWARE_STUB_SUBNET_ADMIN_H
#define HCASIM_FIRMWARE_STUB_SUBNET_ADMIN_H

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "firmware-stub/sa_formats.h"
#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/state/fields.h"

namespace hcasim {
class Port;
class Vport;
struct Profile;
}  // namespace hcasim

namespace hcasim::fw {

class PortAgent;

// Answers to whom a request came from.
class MadSender {
 public:
  virtual void reply(Time t, const Packet& to, const std::uint8_t* mad) = 0;  // kMadBytes

 protected:
  ~MadSender() = default;
};

class SubnetAdmin {
 public:
  struct Blocks {
    const Port& port;
    PerFunction<Vport> vports;  // all functions'
    const Vport& vport;         // of the function that it answers for
    PortAgent& agent;
    MadSender& sender;
  };
  SubnetAdmin(const Profile& profile, Blocks blocks) : profile_(profile), blocks_(std::move(blocks)) {}

  // A request of the class for QP1. False: not for this agent.
  bool take(Time t, const Packet& packet);

  std::uint64_t requests() const { return requests_; }
  std::uint64_t refused() const { return refused_; }  // of them
  std::size_t groups() const { return groups_.size(); }

  // A function of the card has ended: it is in no group any more.
  void forget(const Gid& member);

  // The groups are the subnet's: those of other ports' members outlast the driver at this one, as nobody
  // would have them join again.
  template <class Archive>
  void list_state(Archive& a) {
    a.lasting("groups", groups_);
    a.lasting("made_mgids", made_mgids_);
    if constexpr (Archive::kLoads) {
      if (a.version() < 21) {
        std::map<std::uint64_t, Transfer> by_tid;
        a("transfers", by_tid);
        for (auto& t : by_tid) answers_.push_back(std::move(t.second));
      }
    }
    HCASIM_FIELDS_SINCE(21, a, answers_);
    a.lasting("requests", requests_);
    a.lasting("refused", refused_);
  }

 private:
  struct Group {
    std::uint32_t qkey = 0;
    std::uint16_t mlid = 0, pkey = 0;
    std::uint8_t mtu = 0, rate = 0, life = 0, tclass = 0;
    std::uint32_t sl_flow_hop = 0;
    bool permanent = false;               // IPoIB's broadcast group: there without members
    std::map<Gid, std::uint8_t> members;  // join state

    bool held() const;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, qkey, mlid, pkey, mtu, rate, life, tclass, sl_flow_hop, permanent, members);
    }
  };
  struct Node {
    Gid gid{};
    std::uint16_t lid = 0;
    bool shares_lid = false;  // a virtual function: only its GID tells it apart
  };
  using Groups = std::map<Gid, Group>;
  struct Request {
    SaHeader header{};
    const std::uint8_t* data = nullptr;  // kSaData bytes
    bool asks(std::uint64_t components) const { return (header.component_mask & components) == components; }
  };
  struct Answer {
    std::uint16_t status = kMadOk;
    std::size_t record_bytes = 0;
    std::vector<std::uint8_t> records;  // each padded to 8 bytes

    std::size_t count() const { return record_bytes != 0 ? records.size() / record_bytes : 0; }
    void refuse(std::uint16_t why);
    template <class T>
    void add(const T& record);
  };
  // An answer of several segments, whose receiver tells how far it may go on (13.6.6).
  struct Transfer {
    Packet address;  // of the request: where the segments go
    SaHeader header{};
    std::vector<std::uint8_t> records;
    std::uint32_t sent = 0;

    // Whether it answers this sender's requests of this transaction ID: others may have the same.
    bool is_for(const Packet& from, std::uint64_t tid) const {
      return header.mad.tid == tid && address.slid == from.slid && address.has_grh == from.has_grh &&
             (!from.has_grh || address.sgid == from.sgid);
    }

    template <class Archive>
    void list_state(Archive& a) {
      // Of the packet, what MadSender::reply() goes by: its bytes went back to the pool.
      HCASIM_FIELDS(a, address.slid, address.sl, address.pkey, address.has_grh, address.sgid, address.dgid,
                    address.src_qpn);
      HCASIM_FIELDS(a, header, records, sent);
    }
  };

  void serve(const Request& request, Answer& answer);
  void paths(const Request& request, Answer& answer) const;
  void group_paths(const Request& request, Answer& answer) const;
  void join(const Request& request, Answer& answer);
  void leave(const Request& request, Answer& answer);
  void list_groups(const Request& request, Answer& answer) const;
  Groups::iterator create_group(const Request& request, const McMemberRecord& wish, Answer& answer);

  void send(Time t, const Packet& to, const SaHeader& header, const std::uint8_t* data, std::size_t bytes);
  void send_segments(Time t, Transfer& transfer, std::uint32_t window);
  void take_ack(Time t, const Packet& packet, const SaHeader& header);

  void learn_sender(const Packet& packet);
  std::vector<Node> nodes() const;
  void add_broadcast_group();
  std::uint16_t free_mlid() const;
  std::uint8_t mtu() const;   // code
  std::uint8_t rate() const;  // code
  static McMemberRecord record_of(const Gid& mgid, const Group& group);

  const Profile& profile_;
  const Blocks blocks_;
  Groups groups_;
  std::uint64_t made_mgids_ = 0;
  std::vector<Transfer> answers_;  // oldest first, one for each request under way
  std::uint64_t requests_ = 0, refused_ = 0;
};

}  // namespace hcasim::fw
#endif
