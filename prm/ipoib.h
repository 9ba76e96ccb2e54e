// SPDX-License-Identifier: BSD-3-Clause
/// IPoIB's enhanced offloads, as far as mlx5_ifc.h has no names for them (kernel mlx5 ipoib/ipoib.h,
/// ipoib.c).
#ifndef HCASIM_PRM_IPOIB_H
#define HCASIM_PRM_IPOIB_H

#include <cstddef>
#include <cstdint>

namespace hcasim::prm {

/// Bytes of a WQE between the address (AvSeg) and the EthSeg.
constexpr std::size_t kAddressPad = 16;

/// qpc.ulp_stateless_offload_mode of the UD QP.
constexpr uint32_t kStatelessEnhanced = 2;

}  // namespace hcasim::prm
#endif
