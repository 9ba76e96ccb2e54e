// SPDX-License-Identifier: BSD-3-Clause
/// Bit layouts of the mlx5 command interface and contexts: `get<prm::cqc::log_cq_size>(p)`.
#pragma once

#include "model/prm/field.h"
#include "model/prm/ifc.h"
#include "model/prm/info.h"
