// SPDX-License-Identifier: BSD-3-Clause
// As in caps.cpp: a bit is set only when model and firmware do what it promises.
#include "firmware-stub/caps_cq.h"

#include "firmware-stub/caps.h"
#include "model/cq/cq.h"
#include "prm/prm.h"

namespace hcasim::fw {

namespace {

constexpr unsigned kLogTags = 7, kLogXrqs = 16;

}  // namespace

void fill_general_cq(const Options& options, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  put<g::cqe_version>(c, 1);
  put<g::cq_resize>(c, 1);
  put<g::cq_moderation>(c, 1);
  put<g::cq_period_mode_modify>(c, 1);
  put<g::cq_period_start_from_cqe>(c, 1);
  put<g::cq_oi>(c, 1);
  put<g::cqe_128_always>(c, 1);
  put<g::sctr_data_cqe>(c, 1);
  put<g::cqe_compression>(c, 1);
  const Generation::Features& has = options.generation->has;
  put<g::cqe_compression_128>(c, has.stride_cqe ? 1 : 0);
  put<g::mini_cqe_resp_stride_index>(c, has.stride_cqe ? 1 : 0);
  // Whoever reads it on InfiniBand (UCX) makes XRQs of strides, which there are none of.
  put<g::ext_stride_num_range>(c, has.stride_cqe && options.link == Link::kEthernet ? 1 : 0);
  put<g::cqe_compression_max_num>(c, CqUnit::kMaxBlock);
  put<g::cqe_compression_timeout>(c, CqUnit::kBlockTime / 1000000);  // us
  // Tag matching. Not on Ethernet: libmlx5 connects the command QP without a GRH, and RoCE has no such path.
  if (options.link == Link::kEthernet || !has.tag_matching) return;
  put<g::tag_matching>(c, 1);
  put<g::rndv_offload_rc>(c, 1);
  put<g::log_tag_matching_list_sz>(c, kLogTags);
  put<g::log_max_xrq>(c, kLogXrqs);
}

}  // namespace hcasim::fw
