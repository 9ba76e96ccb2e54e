// SPDX-License-Identifier: BSD-3-Clause
#include "all_to_all.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace hcasim::bare {

namespace {

constexpr std::size_t kSpare = std::size_t{256} << 20;
constexpr std::int64_t kLongest = 20'000'000'000, kQuantum = 2000;  // ns

CqOptions cq_options() {
  CqOptions o;
  o.log_size = 13;
  return o;
}

}  // namespace

struct AllToAll::Node {
  Node(Machine& machine, std::size_t number, const AllToAllOptions& o)
      : dev(machine.function(number), device_options()), number(number) {
    dev.probe();
    pd = std::make_unique<Pd>(dev);
    cq = std::make_unique<Cq>(dev, cq_options());
    out = dev.memory().allocate(o.bytes);
    in = dev.memory().allocate(o.bytes * o.hcas * o.areas);
    std::mt19937_64 random(number + 1);
    for (std::size_t i = 0; i < o.bytes; ++i) out.data()[i] = static_cast<std::uint8_t>(random());
    out_mr = std::make_unique<Mr>(dev, Mr::of(*pd, out));
    in_mr = std::make_unique<Mr>(dev, Mr::of(*pd, in));
    qps.resize(o.hcas);
    QpOptions q;
    q.log_sq = 6;
    for (std::size_t peer = 0; peer < o.hcas; ++peer) {
      if (peer != number) qps[peer] = std::make_unique<Qp>(dev, *pd, *cq, *cq, q);
    }
  }
  static DeviceOptions device_options() {
    DeviceOptions o;
    o.wait_active = false;
    return o;
  }

  Device dev;
  const std::size_t number;
  std::unique_ptr<Pd> pd;
  std::unique_ptr<Cq> cq;
  Buffer out, in;
  std::unique_ptr<Mr> out_mr, in_mr;
  std::vector<std::unique_ptr<Qp>> qps;  // by peer
};

AllToAll::AllToAll(const AllToAllOptions& options)
    : options_(options),
      machine_(kSpare +
               options.hcas * (options.hcas * options.areas + 1) * (options.bytes + (std::size_t{8} << 10)) +
               options.hcas * (std::size_t{8} << 20)) {
  for (std::size_t i = 0; i < options.hcas; ++i) {
    machine_.add_hca(std::string("switch=s,link=") + (options.ethernet ? "eth" : "ib") +
                     ",profile=" + options.profile);
  }
  machine_.start();
  for (std::size_t i = 0; i < options.hcas; ++i)
    nodes_.push_back(std::make_unique<Node>(machine_, i, options_));
  if (!machine_.run_until(
          [&] {
            for (const auto& n : nodes_)
              if (n->dev.port_state() != 4) return false;
            return true;
          },
          kLongest, kQuantum))
    throw BareError("a port does not come up");
  for (const auto& from : nodes_) {
    for (const auto& to : nodes_) {
      if (from == to) continue;
      QpAttr attr;
      attr.remote_qpn = to->qps[from->number]->qpn();
      if (options.ethernet) {
        attr.roce.dgid = to->dev.roce_entry(to->dev.sgid_index()).gid;
        attr.roce.dmac = to->dev.mac();
      } else {
        attr.dlid = to->dev.lid();
      }
      from->qps[to->number]->connect(attr);
    }
  }
}

AllToAll::~AllToAll() = default;

std::size_t AllToAll::run(unsigned writes_each, bool incast) {
  const std::size_t writes = post(writes_each, incast);
  finish();
  return writes;
}

std::size_t AllToAll::post(unsigned writes_each, bool incast) {
  std::size_t writes = 0;
  open_.resize(nodes_.size());
  for (unsigned round = 0; round < writes_each; ++round) {
    for (const auto& from : nodes_) {
      for (std::size_t step = 1; step < nodes_.size(); ++step) {
        const auto& to = nodes_[(from->number + step) % nodes_.size()];
        if (incast && to->number != 0) continue;
        SendWr w;
        w.op = WqeOp::kRdmaWrite;
        w.sges = {{from->out_mr->start(), from->out_mr->key(), options_.bytes}};
        w.raddr = to->in_mr->start() + place(from->number, runs_);
        w.rkey = to->in_mr->key();
        from->qps[to->number]->post(w);
        ++open_[from->number];
        ++writes;
      }
    }
  }
  ++runs_;
  return writes;
}

void AllToAll::finish() {
  std::size_t left = std::accumulate(open_.begin(), open_.end(), std::size_t{0});
  const bool all = machine_.run_until(
      [&] {
        for (const auto& n : nodes_) {
          while (open_[n->number] != 0) {
            const auto c = n->cq->poll();
            if (!c) break;
            if (c->error()) throw BareError("HCA " + std::to_string(n->number) + ": " + c->text());
            note(static_cast<std::uint64_t>(machine_.now()) << 8 ^ n->number);
            --open_[n->number];
            --left;
          }
        }
        return left == 0;
      },
      kLongest, kQuantum);
  if (!all) throw BareError(std::to_string(left) + " completions are missing");
  note(packets());
}

void AllToAll::copy(unsigned writes_each) {
  constexpr std::size_t kPiece = 4096;
  for (unsigned round = 0; round < writes_each; ++round) {
    for (std::size_t step = 1; step < nodes_.size(); ++step) {
      for (std::size_t at = 0; at < options_.bytes; at += kPiece) {
        const std::size_t n = std::min<std::size_t>(kPiece, options_.bytes - at);
        for (const auto& from : nodes_) {
          const auto& to = nodes_[(from->number + step) % nodes_.size()];
          std::memcpy(to->in.data() + place(from->number, runs_) + at, from->out.data() + at, n);
        }
      }
    }
  }
  ++runs_;
}

void AllToAll::check(bool incast) const {
  for (const auto& to : nodes_) {
    if (incast && to->number != 0) break;
    for (const auto& from : nodes_) {
      for (std::size_t run = 0; from != to && run < std::min(runs_, options_.areas); ++run) {
        if (std::memcmp(to->in.data() + place(from->number, run), from->out.data(), options_.bytes) != 0)
          throw BareError("HCA " + std::to_string(from->number) + "'s bytes are not in HCA " +
                          std::to_string(to->number) + "'s memory");
      }
    }
  }
}

void AllToAll::clear() {
  for (const auto& to : nodes_) std::memset(to->in.data(), 0, to->in.size());
  runs_ = 0;
}

std::uint64_t AllToAll::packets() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) sum += counter(i, "tx_packets");
  return sum;
}

std::uint64_t AllToAll::counter(std::size_t hca, const std::string& name) const {
  return nodes_[hca]->dev.function().counter(name);
}

void AllToAll::note(std::uint64_t value) { digest_ = (digest_ ^ value) * 1099511628211ull; }

}  // namespace hcasim::bare
