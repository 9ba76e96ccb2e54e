// SPDX-License-Identifier: BSD-3-Clause
/// All layouts that mlx5_ifc.h lacks.
#pragma once

#include "model/prm/cmd_queue.h"
#include "model/prm/cqe.h"
#include "model/prm/eqe.h"
#include "model/prm/init_seg.h"
#include "model/prm/packet.h"
#include "model/prm/wqe.h"
