// SPDX-License-Identifier: BSD-3-Clause
// What all kinds of shared receive queue have in common: RMP, XRC SRQ, SRQ (srq.cpp), XRQ (xrq.cpp).
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_SRQ_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_SRQ_H

#include <cstdint>
#include <cstring>

#include "firmware-stub/firmware.h"

namespace hcasim::fw {

bool has_xrq(const Caps& caps);

namespace srqs {

// Read out of one of the contexts.
struct Attributes {
  ObjType kind;
  unsigned log_size = 0, log_stride = 0, log_page_size = 0, page_offset = 0;
  std::uint32_t pd = 0, xrcd = 0, cqn = 0, user_index = 0xffffff, limit = 0;
  std::uint64_t dbr = 0;
  std::size_t pas_offset = 0;
  const std::uint8_t* context = nullptr;
  std::size_t context_len = 0;                 // bytes, at most those of SrqObject::context
  bool buffer_umem = false, dbr_umem = false;  // the queue, its doorbell record lie in a UMEM
  std::uint32_t buffer_umem_id = 0, dbr_umem_id = 0;
  std::uint64_t umem_offset = 0;
  bool cyclic = false;    // Srq::cyclic
  bool feature = false;   // asks for something that is not offered
  unsigned log_tags = 0;  // places of the matching list, log2; 0: it has none
  bool rendezvous = false;
};

Syndrome create(Firmware& fw, Command& cmd, const Attributes& a, std::uint32_t& srqn);
// Both halves of the SRQ, of the kind asked for.
Syndrome find(Firmware& fw, std::uint32_t srqn, ObjType kind, SrqObject*& object, Srq*& srq);
Syndrome destroy(Firmware& fw, Command& cmd, std::uint32_t srqn, ObjType kind);
// The event comes once, when fewer than lwm WQEs are left.
Syndrome arm(Firmware& fw, std::uint32_t srqn, ObjType kind, std::uint32_t lwm);

// create() for a command that answers with the new one's number in the field Number.
template <class Number>
Syndrome create_numbered(Firmware& fw, Command& cmd, const Attributes& a) {
  std::uint32_t srqn = 0;
  const Syndrome s = create(fw, cmd, a, srqn);
  if (s == Syndrome::kOk) cmd.put<Number>(srqn);
  return s;
}

// The context that is the command's input, at the field Context.
template <class Context>
void take_context(Command& cmd, Attributes& a) {
  a.context = prm::ptr<Context>(cmd.in.data());
  a.context_len = Context::bytes;
}

constexpr std::uint32_t kWqLinkedList = 0, kWqCyclic = 1;  // wq.wq_type

// What a context's wq (Wq) says, where it has one.
template <class Wq>
void take_wq(const Command& cmd, Attributes& a) {
  a.log_size = cmd.get<typename Wq::log_wq_sz>();
  a.log_stride = cmd.get<typename Wq::log_wq_stride>();
  a.log_page_size = cmd.get<typename Wq::log_wq_pg_sz>();
  a.page_offset = cmd.get<typename Wq::page_offset>();
  a.pd = cmd.get<typename Wq::pd>();
  a.limit = cmd.get<typename Wq::lwm>();
  a.dbr = cmd.get<typename Wq::dbr_addr>();
  a.buffer_umem = cmd.get<typename Wq::wq_umem_valid>() != 0;
  a.buffer_umem_id = cmd.get<typename Wq::wq_umem_id>();
  a.umem_offset = cmd.get<typename Wq::wq_umem_offset>();
  a.dbr_umem = cmd.get<typename Wq::dbr_umem_valid>() != 0;
  a.dbr_umem_id = cmd.get<typename Wq::dbr_umem_id>();
  a.pas_offset = Wq::pas::bit_off / 8;
  const auto type = cmd.get<typename Wq::wq_type>();
  a.cyclic = type == kWqCyclic;
  a.feature = (type != kWqLinkedList && type != kWqCyclic) || cmd.get<typename Wq::wq_signature>() != 0 ||
              cmd.get<typename Wq::cd_slave>() != 0;
}

// Answers with the Context as it was created, and with the queue.
template <class Context>
Syndrome query(Firmware& fw, Command& cmd, std::uint32_t srqn, ObjType kind, Srq*& srq) {
  SrqObject* object = nullptr;
  const Syndrome s = find(fw, srqn, kind, object, srq);
  if (s == Syndrome::kOk)
    std::memcpy(prm::ptr<Context>(cmd.out.data()), object->context.data(), Context::bytes);
  return s;
}

// What changes in a context's wq while it is used.
template <class Wq>
void put_wq(Command& cmd, const Srq& srq) {
  cmd.put<typename Wq::lwm>(srq.limit);
  cmd.put<typename Wq::hw_counter>(srq.consumed);
  cmd.put<typename Wq::sw_counter>(srq.producer);
}

}  // namespace srqs
}  // namespace hcasim::fw
#endif
