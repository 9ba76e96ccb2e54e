// SPDX-License-Identifier: BSD-3-Clause
// As in caps.cpp: a bit is set only when model and firmware do what it promises.
#include "firmware-stub/caps_memory.h"

#include "firmware-stub/caps.h"
#include "firmware-stub/objects/objects.h"
#include "model/tpt/memic.h"
#include "prm/memic.h"
#include "prm/signature_caps.h"

namespace hcasim::fw {

void fill_general_memory(const Generation& generation, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  put<g::imaicl>(c, 1);  // memory windows, bound by UMR
  put<g::null_mkey>(c, 1);
  put<g::dump_fill_mkey>(c, 1);
  put<g::device_memory>(c, generation.has.device_memory ? 1 : 0);
  // Signatures: T10-DIF and CRC32
  put<g::sho>(c, 1);
  put<g::sigerr_cqe>(c, 1);
  put<g::drain_sigerr>(c, 1);
  put<g::log_max_bsf_list_size>(c, 6);
  put<prm::sigerr_domain_and_sig_type>(c, 1);
  // Nothing is reordered here, which relaxed ordering allows.
  put<g::relaxed_ordering_write>(c, 1);
  put<g::relaxed_ordering_write_umr>(c, 1);
  put<g::relaxed_ordering_read>(c, 1);
  put<g::relaxed_ordering_read_pci_enabled>(c, 1);
  put<g::relaxed_ordering_read_umr>(c, 1);
}

void fill_page_tracking(std::uint8_t* c) {
  using v = prm::adv_virtualization_cap;
  put<v::pg_track_log_max_num>(c, kLogPageTracks);
  put<v::pg_track_max_num_range>(c, kPageTrackRanges);
  put<v::pg_track_log_min_addr_space>(c, kLogMinTrackSpace);
  put<v::pg_track_log_max_addr_space>(c, kLogMaxTrackSpace);
  put<v::pg_track_log_min_msg_size>(c, kLogMinTrackMessage);
  put<v::pg_track_log_max_msg_size>(c, kLogMaxTrackMessage);
  put<v::pg_track_log_min_page_size>(c, kLogMinTrackedPage);
  put<v::pg_track_log_max_page_size>(c, kLogMaxTrackedPage);
}

void fill_device_memory(std::uint8_t* c) {
  using m = prm::device_mem_cap;
  put<m::memic>(c, 1);
  put<m::log_min_memic_alloc_size>(c, Memic::kLogGranule);
  put<m::log_max_memic_addr_alignment>(c, kLogMemicAlign);
  put<m::memic_bar_start_addr>(c, Memic::kBase);
  put<m::memic_bar_size>(c, Memic::kBytes);
  put<m::max_memic_size>(c, kMaxMemic);
  put<m::memic_operations>(c, (1u << kMemicOps) - 1);
  put<prm::memic_op_sizes::increment>(c, 0xf);
  put<prm::memic_op_sizes::test_and_set>(c, 0xf);
}

}  // namespace hcasim::fw
