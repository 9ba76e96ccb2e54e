// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/cq.h"

#include <cstdio>
#include <cstring>

#include "prm/umem.h"

namespace hcasim::bare {

std::string Completion::text() const {
  char buf[160];
  const char* o = prm::cqe_op_name(op);
  const char* s = prm::cqe_syndrome_name(syndrome);
  std::snprintf(buf, sizeof buf, "CQE %s, syndrome %s, QPN %#x, WQE %u, %u bytes", o ? o : "?", s ? s : "?",
                qpn, wqe_counter, byte_cnt);
  return buf;
}

const std::uint8_t* Completion::inline_data() const {
  const unsigned format = raw.format() << 2;
  if (format == prm::Cqe::kFormatInline32) return reinterpret_cast<const std::uint8_t*>(&raw);
  return format == prm::Cqe::kFormatInline64 ? head.data() : nullptr;
}

void Cq::clear(const Ring& ring, unsigned log_size, unsigned cqe_size) {
  for (std::size_t i = 0; i < std::size_t{1} << log_size; ++i) {
    auto* cqe = reinterpret_cast<prm::Cqe*>(ring.data() + i * cqe_size + cqe_size - sizeof(prm::Cqe));
    cqe->op_own =
        static_cast<std::uint8_t>(static_cast<unsigned>(prm::CqeOp::kInvalid) << 4 | prm::Cqe::kOwner);
  }
}

Cq::Cq(Device& device, const CqOptions& o)
    : device_(device),
      log_size_(o.log_size),
      cqe_size_(o.cqe_size),
      ring_(device.memory(), std::size_t{o.cqe_size} << o.log_size, o.ring),
      dbr_(device.allocate_dbr()),
      epoch_(device.epoch()),
      compress_(o.compress) {
  clear(ring_, log_size_, cqe_size_);
  using In = prm::create_cq_in;
  using C = In::cq_context;
  const auto pas = ring_.pages();
  Mailbox in(prm::op::CREATE_CQ, In::bytes + pas.size() * 8);
  in.set<C::cqe_sz>(o.padded ? 2 : o.cqe_size == 128 ? 1 : 0);
  in.set<C::oi>(o.overrun_ignore);
  in.set<C::cqe_comp_en>(o.compress.has_value());
  in.set<C::mini_cqe_res_format>(static_cast<std::uint32_t>(o.compress.value_or(prm::MiniFormat{})));
  in.set<C::page_offset>(ring_.page_offset());
  in.set<C::log_page_size>(ring_.log_page_size());
  in.set<C::log_cq_size>(log_size_);
  in.set<C::uar_page>(device.uar());
  in.set<C::cq_period>(o.period_us);
  in.set<C::cq_max_count>(o.max_count);
  in.set<C::cq_period_mode>(o.period_from_cqe);
  in.set<C::c_eqn_or_apu_element>(device.comp_eq(o.comp_vector).eqn());
  in.set<C::dbr_addr>(dbr_.bus);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::set<In::pas>(in.data(), i, pas[i]);
  if (o.in_umem) {
    umems_.emplace(device, ring_, dbr_);
    in.resize(In::bytes);
    in.set<C::dbr_addr>(umems_->dbr_offset()).set<C::dbr_umem_valid>(1).set<In::cq_umem_valid>(1);
    in.set<prm::umem_ref::cqc_dbr_id<C>>(umems_->dbr_id());
    in.set<prm::umem_ref::cq_id>(umems_->ring_id()).set<prm::umem_ref::cq_offset>(umems_->ring_offset());
    in.set<C::page_offset>(0).set<C::log_page_size>(0);
  }
  try {
    cqn_ = static_cast<std::uint32_t>(
        device.exec(in, prm::create_cq_out::bytes).must().get<prm::create_cq_out::cqn>());
  } catch (...) {
    device.free_dbr(dbr_);
    throw;
  }
  live_ = true;
  device.attach(cqn_, this);
}

Cq::~Cq() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
  device_.free_dbr(dbr_);
}

CommandResult Cq::destroy() {
  Mailbox in(prm::op::DESTROY_CQ, prm::destroy_cq_in::bytes);
  auto r = device_.exec(in.set<prm::destroy_cq_in::cqn>(cqn_));
  if (r.ok()) {
    live_ = false;
    device_.detach(cqn_);
  }
  return r;
}

prm::Cqe* Cq::hw_owned(std::uint32_t index) const {
  auto* cqe = reinterpret_cast<prm::Cqe*>(slot(ring_, log_size_, index) + cqe_size_ - sizeof(prm::Cqe));
  if ((cqe->op_own & prm::Cqe::kOwner) != (index >> log_size_ & 1) || cqe->op_own >> 4 == 15) return nullptr;
  return cqe;
}

bool Cq::ready() const { return !taken_.empty() || hw_owned(ci_) != nullptr; }

Completion Cq::decode(const prm::Cqe& cqe) const {
  Completion c;
  c.raw = cqe;
  c.op = cqe.opcode();
  c.qpn = cqe.qpn();
  c.send_op = static_cast<prm::WqeOp>(cqe.send_opcode());
  c.user_index = cqe.srqn_uidx & 0xffffff;
  c.wqe_counter = cqe.wqe_counter;
  if (c.error()) {
    const auto& e = reinterpret_cast<const prm::ErrCqe&>(cqe);
    c.syndrome = static_cast<prm::CqeSyndrome>(e.syndrome);
    c.vendor_syndrome = e.vendor_err_synd;
  } else {
    c.byte_cnt = cqe.byte_cnt;
    c.imm = cqe.imm_inval_pkey;
    c.flags_rqpn = cqe.flags_rqpn;
    c.slid = cqe.slid;
    c.header_type = cqe.l4_l3_hdr_type;
    c.vlan = cqe.vlan_info;
    c.solicited = (cqe.op_own & prm::Cqe::kSolicited) != 0;
  }
  return c;
}

std::optional<Completion> Cq::poll() {
  if (taken_.empty()) {
    const prm::Cqe* cqe = hw_owned(ci_);
    if (!cqe) return std::nullopt;
    if (compress_ && (cqe->op_own & prm::Cqe::kFormatCompressed) == prm::Cqe::kFormatCompressed) {
      prefetch_block(*cqe);
    } else {
      taken_.push_back(decode(*cqe));
      if (cqe_size_ == 128)
        std::memcpy(taken_.back().head.data(),
                    reinterpret_cast<const std::uint8_t*>(cqe) - taken_.back().head.size(),
                    taken_.back().head.size());
      ++ci_;
    }
    if (auto_update_) update_ci();
  }
  const Completion c = taken_.front();
  taken_.pop_front();
  return c;
}

// A title CQE, followed by arrays of mini CQEs. All entries of the block are marked as owned by the driver,
// so that stale contents are not taken for a CQE in the next round.
void Cq::prefetch_block(const prm::Cqe& title) {
  ++blocks_;
  const std::uint32_t n = title.byte_cnt;
  if (n < 2) throw BareError("a block of compressed CQEs of an impossible length");
  // DPDK's vectorized receive reads a block, and fills its ring of buffers, without looking for the end.
  const std::uint32_t ring = 1u << log_size_;
  if ((ci_ & (ring - 1)) + n > ring) throw BareError("a block of compressed CQEs goes past the ring's end");
  const auto at = [this](std::uint32_t index) {
    return slot(ring_, log_size_, index) + cqe_size_ - sizeof(prm::Cqe);
  };
  prm::Cqe cqe = title;
  cqe.op_own &= 0xf0;
  std::uint16_t counter = title.wqe_counter;
  for (std::uint32_t i = 0; i < n; ++i) {
    prm::MiniCqe mini;
    const std::uint32_t array =
        i < prm::MiniCqe::kInSlot ? 1 : i / prm::MiniCqe::kInSlot * prm::MiniCqe::kInSlot;
    std::memcpy(&mini, at(ci_ + array) + i % prm::MiniCqe::kInSlot * sizeof mini, sizeof mini);
    cqe.byte_cnt = mini.byte_cnt;
    if (*compress_ == prm::MiniFormat::kHash)
      cqe.rss_hash_result = mini.info;
    else
      cqe.check_sum = static_cast<std::uint16_t>(mini.info >> 16);
    if (*compress_ == prm::MiniFormat::kChecksumStride) counter = static_cast<std::uint16_t>(mini.info);
    cqe.wqe_counter = counter;
    const std::uint32_t strides = mini.byte_cnt >> 16;
    counter = static_cast<std::uint16_t>(counter + (strides != 0 ? strides : 1));
    taken_.push_back(decode(cqe));
  }
  for (std::uint32_t i = 0; i < n; ++i, ++ci_)
    reinterpret_cast<prm::Cqe*>(at(ci_))->op_own = static_cast<std::uint8_t>(ci_ >> log_size_ & 1);
}

std::vector<Completion> Cq::wait(std::size_t n, std::int64_t timeout) {
  std::vector<Completion> out;
  device_.machine().run_until(
      [&] {
        while (out.size() < n) {
          auto c = poll();
          if (!c) break;
          out.push_back(*c);
        }
        return out.size() >= n;
      },
      timeout);
  return out;
}

Completion Cq::wait_one(std::int64_t timeout) {
  auto v = wait(1, timeout);
  if (v.empty()) throw BareError("no completion came");
  return v[0];
}

unsigned Cq::discard(unsigned n) {
  unsigned taken = 0;
  while (taken < n && hw_owned(ci_)) {
    ++ci_;
    ++taken;
  }
  if (taken != 0) update_ci();
  return taken;
}

void Cq::update_ci() { dbr_.set(0, ci_ & 0xffffff); }

void Cq::arm(bool solicited_only) {
  prm::CqDoorbell d;
  d.cmd_ci = (arm_sn_ & 3) << 28 | (solicited_only ? prm::CqDoorbell::kSolicitedOnly : 0) | (ci_ & 0xffffff);
  d.cqn = cqn_;
  dbr_.set(1, d.cmd_ci);
  device_.function().write(device_.uar_offset() + prm::uar::kCqArm, &d, sizeof d);
}

CommandResult Cq::resize(unsigned log_size) {
  Ring ring(device_.memory(), std::size_t{cqe_size_} << log_size, RingLayout{});
  clear(ring, log_size, cqe_size_);
  using In = prm::modify_cq_in;
  using C = In::cq_context;
  const auto pas = ring.pages();
  Mailbox in(prm::op::MODIFY_CQ, In::bytes + pas.size() * 8, 1);
  in.set<In::cqn>(cqn_);
  in.set<In::modify_field_select_resize_field_select::resize_field_select::resize_field_select>(7);
  in.set<C::page_offset>(ring.page_offset());
  in.set<C::log_page_size>(ring.log_page_size());
  in.set<C::log_cq_size>(log_size);
  for (std::size_t i = 0; i < pas.size(); ++i) prm::set<In::pas>(in.data(), i, pas[i]);
  auto r = device_.exec(in);
  if (!r.ok()) return r;
  // CQEs not polled yet move up by one, because the RESIZE CQE occupies an entry.
  std::uint32_t i = ci_;
  while (true) {
    const prm::Cqe* cqe = hw_owned(i);
    if (!cqe) throw BareError("no RESIZE CQE in the old ring");
    if (cqe->opcode() == prm::CqeOp::kResize) break;
    std::uint8_t* to = slot(ring, log_size, i + 1);
    std::memcpy(to, slot(ring_, log_size_, i), cqe_size_);
    auto* copy = reinterpret_cast<prm::Cqe*>(to + cqe_size_ - sizeof(prm::Cqe));
    copy->op_own = static_cast<std::uint8_t>((copy->op_own & ~prm::Cqe::kOwner) | ((i + 1) >> log_size & 1));
    ++i;
  }
  ++ci_;
  ring_ = std::move(ring);
  log_size_ = log_size;
  update_ci();
  return r;
}

Mailbox Cq::moderation(unsigned period_us, unsigned max_count) const {
  using In = prm::modify_cq_in;
  Mailbox in(prm::op::MODIFY_CQ, In::bytes);
  in.set<In::cqn>(cqn_);
  in.set<In::modify_field_select_resize_field_select::modify_field_select::modify_field_select>(3);
  in.set<In::cq_context::cq_period>(period_us);
  in.set<In::cq_context::cq_max_count>(max_count);
  return in;
}

CommandResult Cq::set_moderation(unsigned period_us, unsigned max_count) {
  return device_.exec(moderation(period_us, max_count));
}

void Cq::moderate_later(unsigned period_us, unsigned max_count, std::function<void()> done) {
  device_.cmd().submit(moderation(period_us, max_count), prm::modify_cq_out::bytes,
                       [done = std::move(done)](const CommandResult& r) {
                         r.must();
                         done();
                       });
}

CommandResult Cq::query() {
  Mailbox in(prm::op::QUERY_CQ, prm::query_cq_in::bytes);
  return device_.exec(in.set<prm::query_cq_in::cqn>(cqn_), prm::query_cq_out::bytes);
}

}  // namespace hcasim::bare
