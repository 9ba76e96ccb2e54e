// SPDX-License-Identifier: BSD-3-Clause
/// All layouts that mlx5_ifc.h lacks.
#pragma once

#include "prm/cmd_queue.h"
#include "prm/cqe.h"
#include "prm/eqe.h"
#include "prm/init_seg.h"
#include "prm/packet.h"
#include "prm/wqe.h"
