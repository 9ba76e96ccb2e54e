// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/traffic.h"

#include <ns3/simulator.h>

#include <algorithm>
#include <utility>

namespace hcasim::fabric {

namespace {

using bare::WqeOp;

constexpr unsigned kMostPosted = 1u << kLogSendQueue, kMostReceives = 1u << kLogReceiveQueue;
constexpr std::size_t kMostCompletions = 1u << kLogMostCompletions;

// Of each of a card's connections, so that its CQ has room for all.
unsigned share(unsigned most, std::size_t connections) {
  return static_cast<unsigned>(
      std::clamp<std::size_t>(kMostCompletions / std::max<std::size_t>(1, connections), 1, most));
}

}  // namespace

Traffic::Traffic(const Workload& workload, Cards& cards, Coupling& coupling)
    : workload_(workload),
      cards_(cards),
      coupling_(coupling),
      first_dependency_(workload.messages.size() + 1),
      heard_(workload.messages.size()),
      times_(workload.messages.size()),
      by_peer_(cards.count()),
      by_qpn_(cards.count()) {
  for (const Dependency& d : workload.dependencies) {
    ++first_dependency_[d.before + 1];
    if (workload.messages[d.after].source != workload.messages[d.before].source) heard_[d.before] = 1;
  }
  for (std::size_t i = 1; i < first_dependency_.size(); ++i) first_dependency_[i] += first_dependency_[i - 1];
  for (std::uint32_t i = 0; i < workload.messages.size(); ++i) {
    const Message& m = workload.messages[i];
    waits_.push_back(m.waits);
    if (m.waits == 0 && cards.is_here(m.source)) starts_.push_back(i);
    for (const auto& [card, peer] :
         {std::pair(m.source, m.destination), std::pair(m.destination, m.source)}) {
      if (!cards.is_here(card)) continue;
      Connection& c = by_peer_[card][peer];
      c.card = card;
      c.peer = peer;
      if (heard_[i] == 0) continue;
      if (card == m.destination)
        ++c.to_receive;
      else
        c.far_end_receives = true;
    }
  }
  std::stable_sort(starts_.begin(), starts_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return workload.messages[a].start < workload.messages[b].start;
  });
}

Cards::Needs Traffic::needs() const {
  Cards::Needs n;
  for (const Message& m : workload_.messages) n.largest_message = std::max(n.largest_message, m.bytes);
  for (const auto& connections : by_peer_) {
    const auto receiving = static_cast<std::size_t>(std::count_if(
        connections.begin(), connections.end(), [](const auto& c) { return c.second.to_receive != 0; }));
    n.sends.push_back(static_cast<unsigned>(connections.size() * share(kMostPosted, connections.size())));
    n.receives.push_back(static_cast<unsigned>(receiving * share(kMostReceives, connections.size())));
  }
  return n;
}

Traffic::Connection& Traffic::connection(unsigned card, unsigned peer) { return by_peer_[card].at(peer); }

void Traffic::connect(const Ranks& ranks, const std::function<void(std::size_t, std::size_t)>& told) {
  const auto pairs = pairs_of(workload_);
  std::vector<std::uint64_t> qpns(2 * pairs.size());  // of each pair's ends
  const auto end = [&pairs](std::size_t i) {
    const auto [low, high] = pairs[i / 2];
    return i % 2 == 0 ? std::pair(low, high) : std::pair(high, low);
  };
  for (std::size_t i = 0; i < qpns.size(); ++i) {
    const auto [card, peer] = end(i);
    if (!cards_.is_here(card)) continue;
    Connection& c = connection(card, peer);
    c.qp = &cards_.add_qp(card, peer, c.to_receive != 0 || c.far_end_receives);
    by_qpn_[card][c.qp->qpn()] = &c;
    qpns[i] = c.qp->qpn();
    told(i / 4, pairs.size());
  }
  ranks.add(qpns);
  for (std::size_t i = 0; i < qpns.size(); ++i) {
    const auto [card, peer] = end(i);
    if (!cards_.is_here(card)) continue;
    cards_.connect(card, peer, static_cast<std::uint32_t>(qpns[i ^ 1]));
    post_receives(connection(card, peer), share(kMostReceives, by_peer_[card].size()));
    told((qpns.size() + i + 2) / 4, pairs.size());
  }
}

void Traffic::post_receives(Connection& c, unsigned most) {
  for (; most != 0 && c.to_receive != 0; --most, --c.to_receive) c.qp->post_recv({});
}

void Traffic::begin(Time t) {
  begin_ = t;
  for (const unsigned i : cards_.here()) {
    Card& card = cards_.card(i);
    card.send_cq->set_handler([this, i] { sent(i); });
    card.receive_cq->set_handler([this, i] { received(i); });
    card.send_cq->arm();
    card.receive_cq->arm();
  }
  ns3::Simulator::Schedule(until(begin_, Turn::kStart), &Traffic::start_due, this);
}

void Traffic::start_due() {
  coupling_.act([this] {
    const Time now = since_begin();
    while (next_start_ < starts_.size() && workload_.messages[starts_[next_start_]].start <= now)
      ready(starts_[next_start_++]);
  });
  if (next_start_ == starts_.size()) return;
  const Time next = begin_ + workload_.messages[starts_[next_start_]].start;
  ns3::Simulator::Schedule(until(next, Turn::kStart), &Traffic::start_due, this);
}

void Traffic::ready(std::uint32_t id) {
  const Message& m = workload_.messages[id];
  times_[id].ready = since_begin();
  Connection& c = connection(m.source, m.destination);
  c.waiting.push(id);
  post(c);
}

void Traffic::post(Connection& c) {
  bool any = false;
  const unsigned most = share(kMostPosted, by_peer_[c.card].size());
  while (!c.waiting.empty() && c.posted.size() < most) {
    const std::uint32_t id = c.waiting.front();
    c.waiting.pop();
    const Card& from = cards_.card(c.card);
    const Peer& to = cards_.peer(c.peer);
    bare::SendWr w;
    w.op = heard_[id] ? WqeOp::kRdmaWriteImm : WqeOp::kRdmaWrite;
    w.sges = {
        {from.source->start(), from.source->key(), static_cast<std::uint32_t>(workload_.messages[id].bytes)}};
    w.raddr = to.address;
    w.rkey = to.key;
    w.imm = id;
    c.qp->post(w, false);
    c.posted.push(id);
    any = true;
  }
  if (any) c.qp->ring_doorbell();
}

void Traffic::sent(unsigned number) {
  Card& card = cards_.card(number);
  while (const auto completion = card.send_cq->poll()) {
    const auto at = by_qpn_[number].find(completion->qpn);
    if (at == by_qpn_[number].end() || at->second->posted.empty()) continue;
    Connection& c = *at->second;
    const std::uint32_t id = c.posted.front();
    c.posted.pop();
    if (completion->error()) {
      failed(id, completion->text());
      return;
    }
    times_[id].done = since_begin();
    ++done_;
    bytes_done_ += workload_.messages[id].bytes;
    reached(id, number);
    post(c);
  }
  card.send_cq->arm();
}

// What ns-3 does at one time has an order that depends on how cards are dealt out to ranks.
void Traffic::failed(std::uint32_t id, const std::string& how) {
  const Time at = since_begin();
  if (std::pair(at, id) >= std::pair(failure_.at, failure_.message)) return;
  const Message& m = workload_.messages[id];
  failure_ = {at, id,
              "message " + std::to_string(id) + " from card " + std::to_string(m.source) + " to card " +
                  std::to_string(m.destination) + " failed: " + how};
}

void Traffic::received(unsigned number) {
  Card& card = cards_.card(number);
  while (const auto completion = card.receive_cq->poll()) {
    const auto at = by_qpn_[number].find(completion->qpn);
    if (at == by_qpn_[number].end() || completion->error()) continue;  // the sender has one, too
    post_receives(*at->second, 1);
    if (completion->imm < workload_.messages.size()) reached(completion->imm, number);
  }
  card.receive_cq->arm();
}

void Traffic::reached(std::uint32_t id, unsigned at) {
  for (std::uint32_t i = first_dependency_[id]; i < first_dependency_[id + 1]; ++i) {
    const std::uint32_t after = workload_.dependencies[i].after;
    if (workload_.messages[after].source == at && --waits_[after] == 0) ready(after);
  }
}

}  // namespace hcasim::fabric
