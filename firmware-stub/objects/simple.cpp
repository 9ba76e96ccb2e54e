// SPDX-License-Identifier: BSD-3-Clause
// Objects that are little more than a number: PD, UAR page, XRC domain, transport domain, Q counter.
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/vport_target.h"
#include "prm/vport_counters.h"

namespace hcasim::fw {

namespace {

template <class OutField>
Syndrome allocate(Firmware& fw, Command& cmd, Table<PlainObject>& table, ObjType type, Syndrome limit) {
  std::uint32_t number = 0;
  if (table.create(number) == nullptr) return limit;
  cmd.put<OutField>(number);
  fw.trace_create(type, number, cmd.uid);
  return Syndrome::kOk;
}

template <class InField>
Syndrome release(Firmware& fw, Command& cmd, Table<PlainObject>& table, ObjType type, Syndrome unknown,
                 Syndrome busy) {
  const std::uint32_t number = cmd.get<InField>();
  const PlainObject* object = table.find(number);
  if (object == nullptr) return unknown;
  if (object->referred()) return busy;
  table.destroy(number);
  fw.trace_destroy(type, number, cmd.uid);
  return Syndrome::kOk;
}

}  // namespace

Syndrome alloc_pd(Firmware& fw, Command& cmd) {
  return allocate<prm::alloc_pd_out::pd>(fw, cmd, fw.objects().pds, ObjType::kPd, Syndrome::kPdLimit);
}
Syndrome dealloc_pd(Firmware& fw, Command& cmd) {
  return release<prm::dealloc_pd_in::pd>(fw, cmd, fw.objects().pds, ObjType::kPd, Syndrome::kPdNumber,
                                         Syndrome::kPdBusy);
}

Syndrome alloc_uar(Firmware& fw, Command& cmd) {
  const Syndrome s =
      allocate<prm::alloc_uar_out::uar>(fw, cmd, fw.objects().uars, ObjType::kUar, Syndrome::kUarLimit);
  if (s == Syndrome::kOk)
    fw.function().uars().set_allocated(prm::get<prm::alloc_uar_out::uar>(cmd.out.data()), true);
  return s;
}
Syndrome dealloc_uar(Firmware& fw, Command& cmd) {
  const Syndrome s = release<prm::dealloc_uar_in::uar>(fw, cmd, fw.objects().uars, ObjType::kUar,
                                                       Syndrome::kUarNumber, Syndrome::kUarNumber);
  if (s == Syndrome::kOk) fw.function().uars().set_allocated(cmd.get<prm::dealloc_uar_in::uar>(), false);
  return s;
}

Syndrome alloc_xrcd(Firmware& fw, Command& cmd) {
  return allocate<prm::alloc_xrcd_out::xrcd>(fw, cmd, fw.objects().xrcds, ObjType::kXrcd,
                                             Syndrome::kXrcdLimit);
}
Syndrome dealloc_xrcd(Firmware& fw, Command& cmd) {
  return release<prm::dealloc_xrcd_in::xrcd>(fw, cmd, fw.objects().xrcds, ObjType::kXrcd,
                                             Syndrome::kXrcdNumber, Syndrome::kXrcdBusy);
}

Syndrome alloc_transport_domain(Firmware& fw, Command& cmd) {
  return allocate<prm::alloc_transport_domain_out::transport_domain>(
      fw, cmd, fw.objects().tds, ObjType::kTransportDomain, Syndrome::kTdLimit);
}
Syndrome dealloc_transport_domain(Firmware& fw, Command& cmd) {
  return release<prm::dealloc_transport_domain_in::transport_domain>(
      fw, cmd, fw.objects().tds, ObjType::kTransportDomain, Syndrome::kTdNumber, Syndrome::kTdBusy);
}

Syndrome alloc_q_counter(Firmware& fw, Command& cmd) {
  const Syndrome s = allocate<prm::alloc_q_counter_out::counter_set_id>(
      fw, cmd, fw.objects().q_counters, ObjType::kQCounter, Syndrome::kQCounterLimit);
  if (s == Syndrome::kOk) {
    const auto id = prm::get<prm::alloc_q_counter_out::counter_set_id>(cmd.out.data());
    fw.function().q_counters()[static_cast<std::uint8_t>(id)] = {};
  }
  return s;
}
Syndrome dealloc_q_counter(Firmware& fw, Command& cmd) {
  return release<prm::dealloc_q_counter_in::counter_set_id>(fw, cmd, fw.objects().q_counters,
                                                            ObjType::kQCounter, Syndrome::kQCounterNumber,
                                                            Syndrome::kQCounterBusy);
}

Syndrome query_q_counter(Firmware& fw, Command& cmd) {
  using in = prm::query_q_counter_in;
  using out = prm::query_q_counter_out;
  const auto id = cmd.get<in::counter_set_id>();
  Firmware* of = vport_of<prm::query_q_counter_of_vport_in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  const bool all = cmd.get<prm::query_q_counter_of_vport_in::aggregate>() != 0;
  if (!all && of->objects().q_counters.find(id) == nullptr) return Syndrome::kQCounterNumber;
  QCounters& sets = of->function().q_counters();
  QCounter& one = sets[static_cast<std::uint8_t>(id)];
  const QCounter c = all ? sets.sum() : one;
  const auto put = [&cmd](auto field, std::uint64_t v) {
    using F = decltype(field);
    cmd.put<F>(static_cast<std::uint32_t>(v));  // counters wrap at 32 bits
  };
  put(out::rx_write_requests{}, c.rx_write_requests);
  put(out::rx_read_requests{}, c.rx_read_requests);
  put(out::rx_atomic_requests{}, c.rx_atomic_requests);
  put(out::rx_dct_connect{}, c.rx_dct_connect);
  put(out::out_of_buffer{}, c.out_of_buffer);
  put(out::out_of_sequence{}, c.out_of_sequence);
  put(out::duplicate_request{}, c.duplicate_request);
  put(out::rnr_nak_retry_err{}, c.rnr_nak_retry_err);
  put(out::packet_seq_err{}, c.packet_seq_err);
  put(out::implied_nak_seq_err{}, c.implied_nak_seq_err);
  put(out::local_ack_timeout_err{}, c.local_ack_timeout_err);
  put(out::resp_local_length_error{}, c.resp_local_length_error);
  put(out::resp_cqe_error{}, c.resp_cqe_error);
  put(out::req_cqe_error{}, c.req_cqe_error);
  put(out::req_remote_invalid_request{}, c.req_remote_invalid_request);
  put(out::req_remote_access_errors{}, c.req_remote_access_errors);
  put(out::resp_remote_access_errors{}, c.resp_remote_access_errors);
  put(out::req_transport_retries_exceeded{}, c.req_transport_retries_exceeded);
  put(prm::query_q_counter_more_out::req_rnr_retries_exceeded{}, c.req_rnr_retries_exceeded);
  put(out::resp_cqe_flush_error{}, c.resp_cqe_flush_error);
  put(out::req_cqe_flush_error{}, c.req_cqe_flush_error);
  if (cmd.get<in::clear>() == 0) return Syndrome::kOk;
  if (all) {
    sets.clear();
  } else {
    one = {};
  }
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
