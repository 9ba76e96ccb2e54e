// SPDX-License-Identifier: BSD-3-Clause
// Q counters: what the engines count by the counter set of a queue (query_q_counter_out).
#ifndef HCASIM_MODEL_CTX_Q_COUNTERS_H
#define HCASIM_MODEL_CTX_Q_COUNTERS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/prefetch.h"
#include "model/state/fields.h"

namespace hcasim {

struct QCounter {
  std::uint64_t rx_write_requests = 0, rx_read_requests = 0, rx_atomic_requests = 0, out_of_buffer = 0,
                out_of_sequence = 0, duplicate_request = 0, rnr_nak_retry_err = 0, packet_seq_err = 0,
                implied_nak_seq_err = 0, local_ack_timeout_err = 0, req_remote_access_errors = 0,
                req_remote_invalid_request = 0, req_cqe_error = 0, resp_cqe_error = 0,
                req_cqe_flush_error = 0, resp_cqe_flush_error = 0, resp_local_length_error = 0,
                resp_remote_access_errors = 0, rx_dct_connect = 0, req_transport_retries_exceeded = 0,
                req_rnr_retries_exceeded = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, rx_write_requests, rx_read_requests, rx_atomic_requests, out_of_buffer, out_of_sequence,
                  duplicate_request, rnr_nak_retry_err, packet_seq_err, implied_nak_seq_err,
                  local_ack_timeout_err, req_remote_access_errors, req_remote_invalid_request, req_cqe_error,
                  resp_cqe_error, req_cqe_flush_error, resp_cqe_flush_error, resp_local_length_error,
                  resp_remote_access_errors, rx_dct_connect);
    HCASIM_FIELDS_SINCE(13, a, req_transport_retries_exceeded, req_rnr_retries_exceeded);
  }
  QCounter& operator+=(QCounter other) {
    Members to, from;
    list_state(to);
    other.list_state(from);
    for (std::size_t i = 0; i < to.at.size(); ++i) *to.at[i] += *from.at[i];
    return *this;
  }

 private:
  struct Members {
    static constexpr bool kLoads = false;
    std::vector<std::uint64_t*> at;
    template <class... T>
    void all(const char*, T&... members) {
      (at.push_back(&members), ...);
    }
  };
};

// By counter_set_id, 0 to 255.
class QCounters {
 public:
  QCounter& operator[](std::uint8_t set) { return counters_[set]; }
  void clear() { counters_ = {}; }
  QCounter sum() const {
    QCounter total;
    for (const QCounter& set : counters_) total += set;
    return total;
  }
  void prefetch() const { prefetch_line(&counters_[0]); }  // the set of queues that name none

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, counters_);
  }

 private:
  std::array<QCounter, 256> counters_{};
};

}  // namespace hcasim
#endif
