// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/qp.h"
#include "model/state/state.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kNumbers = 1u << 24;

template <class T>
T* insert(std::vector<std::unique_ptr<T>>& table, std::uint32_t number, std::size_t& count) {
  if (number >= kNumbers) return nullptr;
  if (number >= table.size()) table.resize(number + 1);
  if (table[number]) return nullptr;
  table[number] = std::make_unique<T>();
  ++count;
  return table[number].get();
}

template <class T>
bool remove(std::vector<std::unique_ptr<T>>& table, std::uint32_t number, std::size_t& count) {
  if (number >= table.size() || !table[number]) return false;
  table[number].reset();
  --count;
  return true;
}

}  // namespace

Qp* QpTable::create(std::uint32_t qpn) {
  Qp* qp = insert(qps_, qpn, qp_count_);
  if (qp) {
    qp->qpn = qpn;
    qp->function = function_;
  }
  return qp;
}

bool QpTable::destroy(std::uint32_t qpn) { return remove(qps_, qpn, qp_count_); }

Srq* QpTable::create_srq(std::uint32_t srqn) {
  Srq* srq = insert(srqs_, srqn, srq_count_);
  if (srq) {
    srq->srqn = srqn;
    srq->function = function_;
  }
  return srq;
}

bool QpTable::destroy_srq(std::uint32_t srqn) { return remove(srqs_, srqn, srq_count_); }

void QpTable::clear() { reset_state(*this); }

}  // namespace hcasim
