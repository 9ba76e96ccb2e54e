// SPDX-License-Identifier: BSD-3-Clause
// On-demand paging with the transport's page faults, as ConnectX-5 has them: no faults by memory key
// (mem_page_fault), so none for queues of user contexts whose WQEs the driver cannot read.
#include "firmware-stub/caps_odp.h"

#include <cstring>

#include "prm/prm.h"

namespace hcasim::fw {

namespace {

using odp = prm::odp_cap;
using scheme = odp::transport_page_fault_scheme_cap;

template <class T>
void all(std::uint8_t* c) {
  prm::set<typename T::send>(c, 1);
  prm::set<typename T::receive>(c, 1);
  prm::set<typename T::write>(c, 1);
  prm::set<typename T::read>(c, 1);
  prm::set<typename T::atomic>(c, 1);
}

}  // namespace

void fill_general_odp(std::uint8_t* c) {
  prm::set<prm::cmd_hca_cap::pg>(c, 1);
  // With null_mkey: a KSM list of all of a process's memory, whose entries come into being as they are used.
  prm::set<prm::cmd_hca_cap::fixed_buffer_size>(c, 1);
}

void fill_odp(const Generation& generation, std::uint8_t* maximum, std::uint8_t* power_on) {
  all<scheme::rc_odp_caps>(power_on);
  prm::set<scheme::ud_odp_caps::send>(power_on, 1);
  std::memcpy(maximum, power_on, odp::bytes);
  prm::set<scheme::rc_odp_caps::srq_receive>(maximum, 1);
  prm::set<scheme::ud_odp_caps::srq_receive>(maximum, 1);
  if (!generation.has.odp_xrc_dc) return;
  all<scheme::xrc_odp_caps>(maximum);
  prm::set<scheme::xrc_odp_caps::srq_receive>(maximum, 1);
  all<scheme::dc_odp_caps>(maximum);
  prm::set<scheme::dc_odp_caps::srq_receive>(maximum, 1);
}

bool take_odp(const std::uint8_t* block, const std::uint8_t* maximum, std::uint8_t* into) {
  for (std::size_t i = 0; i < odp::bytes; ++i)
    if ((block[i] & ~maximum[i]) != 0) return false;
  std::memcpy(into, block, odp::bytes);
  return true;
}

}  // namespace hcasim::fw
