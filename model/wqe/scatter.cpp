// SPDX-License-Identifier: BSD-3-Clause
#include "model/wqe/scatter.h"

#include <algorithm>

namespace hcasim {

namespace {

WriteOwner qp_owner(const Qp& qp) { return WriteOwner{WriteOwner::kQp, qp.function, qp.qpn}; }

// Calls f(sge, first byte in it, length, bytes done so far) for the pieces of [offset, offset + len).
// Returns how many bytes the list had.
template <class F>
std::uint32_t each_piece(const std::vector<Sge>& sges, std::uint64_t offset, std::uint32_t len, F f) {
  std::uint32_t done = 0;
  for (const Sge& sge : sges) {
    if (done == len) break;
    if (offset >= sge.len) {
      offset -= sge.len;
      continue;
    }
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(len - done, sge.len - offset));
    if (!f(sge, offset, n, done)) break;
    done += n;
    offset = 0;
  }
  return done;
}

}  // namespace

MoveResult Mover::gather(Time t, const Qp& qp, const std::vector<Sge>& sges, std::uint64_t offset,
                         std::uint32_t len, std::uint8_t* dst, bool behind_writes, Packet* whole) {
  MoveResult r;
  r.at = t;
  const std::uint32_t done = each_piece(
      sges, offset, len, [&](const Sge& sge, std::uint64_t skip, std::uint32_t n, std::uint32_t at) {
        if (Mkey* key = tpt_.signed_key(qp.function, sge.lkey))
          return gather_signed(r, *key, sge.lkey, {{qp.pd, qp.qpn, qp.function}, Access::kLocalRead},
                               sge.addr + skip, n, dst + at);
        fragments_.clear();
        const Translation tr =
            tpt_.translate(t, sge.lkey, KeyUser{qp.pd, qp.qpn, qp.function, qp.reserved_lkey},
                           Access::kLocalRead, sge.addr + skip, n, fragments_);
        r.status = tr.status;
        if (!r.ok()) return false;
        r.addressed = std::max(r.addressed, tr.ready);
        if (whole && n == len && fragments_.size() == 1 && fragments_.front().space == Space::kHost) {
          const ReadDone d = dma_.read_payload(tr.ready, fragments_.front().addr, *whole, qp_owner(qp));
          r.dma_ok = d.ok;
          r.at = std::max(r.at, d.at);
          return r.dma_ok;
        }
        std::uint8_t* to = dst + at;
        for (const Fragment& f : fragments_) {
          r.local = r.local || f.space != Space::kHost;
          const auto read = behind_writes ? &Dma::read_flush : &Dma::read;
          const ReadDone d =
              (dma_.*read)(tr.ready, f.addr, to, f.len, f.space, qp_owner(qp), Dma::What::kPayload);
          r.dma_ok = r.dma_ok && d.ok;
          r.at = std::max(r.at, d.at);
          to += f.len;
        }
        return r.dma_ok;
      });
  if (r.ok() && done != len) r.status = TptStatus::kOutOfRange;
  return r;
}

bool Mover::gather_run(Time t, Time apart, const Qp& qp, const std::vector<Sge>& sges, std::uint64_t offset,
                       Packet& packet, MoveResult& r) {
  for (const Sge& sge : sges) {
    if (offset >= sge.len) {
      offset -= sge.len;
      continue;
    }
    if (sge.len - offset < packet.payload_len || tpt_.signed_key(qp.function, sge.lkey)) return false;
    fragments_.clear();
    const Translation tr =
        tpt_.translate(t, sge.lkey, KeyUser{qp.pd, qp.qpn, qp.function, qp.reserved_lkey}, Access::kLocalRead,
                       sge.addr + offset, packet.payload_len, fragments_);
    if (tr.status != TptStatus::kOk || fragments_.size() != 1 || fragments_.front().space != Space::kHost)
      return false;
    r.addressed = tr.ready;
    return dma_.read_run(tr.ready, apart, fragments_.front().addr, packet, qp_owner(qp));
  }
  return false;
}

MoveResult Mover::scatter(Time t, const Qp& qp, std::uint32_t pd, const std::vector<Sge>& sges,
                          std::uint64_t offset, const PacketRef& packet, std::uint32_t from,
                          std::uint32_t len, bool group) {
  return scatter(t, qp_owner(qp), KeyUser{pd, qp.qpn, qp.function, qp.reserved_lkey}, sges, offset, packet,
                 from, len, group);
}

MoveResult Mover::scatter(Time t, WriteOwner owner, const KeyUser& user, const std::vector<Sge>& sges,
                          std::uint64_t offset, const PacketRef& packet, std::uint32_t from,
                          std::uint32_t len, bool group) {
  MoveResult r;
  r.at = t;
  const std::uint32_t done = each_piece(
      sges, offset, len, [&](const Sge& sge, std::uint64_t skip, std::uint32_t n, std::uint32_t at) {
        if (Mkey* key = tpt_.signed_key(owner.function, sge.lkey))
          return scatter_signed(r, *key, sge.lkey, {user, Access::kLocalWrite}, sge.addr + skip,
                                packet->data() + from + at, n, owner, group);
        fragments_.clear();
        const Time here = packet->packets == 1 ? t : packet->at[(from + at) / packet->unit];
        const Translation tr =
            tpt_.translate(here, sge.lkey, user, Access::kLocalWrite, sge.addr + skip, n, fragments_);
        r.status = tr.status;
        if (!r.ok()) return false;
        r.at = std::max(r.at, write(here, tr, packet, from + at, owner, group));
        return true;
      });
  if (r.ok() && done != len) r.status = TptStatus::kOutOfRange;
  return r;
}

// Writes what has just been translated, payload from `src` on that came at `here`. Returns when it is
// visible.
Time Mover::write(Time here, const Translation& tr, const PacketRef& packet, std::uint32_t src,
                  WriteOwner owner, bool group) {
  // If no translation had to be fetched, the payload has gone on as it came, and what comes behind in a run
  // has the time of its own.
  const Dma::Inflow inflow = tr.misses == 0 ? Dma::Inflow{packet->streamed, tr.ready - here} : Dma::Inflow{};
  Time at = here;
  for (const Fragment& f : fragments_) {
    at = std::max(at, dma_.post_write(tr.ready, f.addr, packet, src, f.len, owner, group, f.space, inflow));
    src += f.len;
  }
  return at;
}

MoveResult Mover::write_remote(Time t, const Qp& qp, std::uint32_t pd, std::uint32_t rkey, std::uint64_t va,
                               const PacketRef& packet, bool group) {
  MoveResult r;
  r.at = t;
  if (Mkey* key = tpt_.signed_key(qp.function, rkey)) {
    scatter_signed(r, *key, rkey, {{pd, qp.qpn, qp.function}, Access::kRemoteWrite}, va, packet->data(),
                   packet->payload_len, qp_owner(qp), group);
    return r;
  }
  fragments_.clear();
  const Time here = packet->packets == 1 ? t : packet->at[0];
  const Translation tr = tpt_.translate(here, rkey, KeyUser{pd, qp.qpn, qp.function}, Access::kRemoteWrite,
                                        va, packet->payload_len, fragments_);
  r.status = tr.status;
  if (r.ok()) r.at = std::max(r.at, write(here, tr, packet, 0, qp_owner(qp), group));
  return r;
}

MoveResult Mover::read_remote(Time t, const Qp& qp, std::uint32_t pd, std::uint32_t rkey, std::uint64_t va,
                              std::uint32_t len, std::uint8_t* dst) {
  MoveResult r;
  r.at = t;
  if (Mkey* key = tpt_.signed_key(qp.function, rkey)) {
    gather_signed(r, *key, rkey, {{pd, qp.qpn, qp.function}, Access::kRemoteRead}, va, len, dst);
    return r;
  }
  fragments_.clear();
  const Translation tr =
      tpt_.translate(t, rkey, KeyUser{pd, qp.qpn, qp.function}, Access::kRemoteRead, va, len, fragments_);
  r.status = tr.status;
  if (!r.ok()) return r;
  for (const Fragment& f : fragments_) {
    r.local = r.local || f.space != Space::kHost;
    const ReadDone d =
        dma_.read_flush(tr.ready, f.addr, dst, f.len, f.space, qp_owner(qp), Dma::What::kPayload);
    r.dma_ok = r.dma_ok && d.ok;
    r.at = std::max(r.at, d.at);
    dst += f.len;
  }
  return r;
}

TptStatus Mover::check(const Qp& qp, const std::vector<Sge>& sges, Access access) {
  for (const Sge& sge : sges) {
    const TptStatus s = tpt_.check(sge.lkey, KeyUser{qp.pd, qp.qpn, qp.function, qp.reserved_lkey}, access,
                                   sge.addr, sge.len);
    if (s != TptStatus::kOk) return s;
  }
  return TptStatus::kOk;
}

}  // namespace hcasim
