// SPDX-License-Identifier: BSD-3-Clause
/// Bit layouts of the mlx5 command interface and contexts: `get<prm::cqc::log_cq_size>(p)`.
#pragma once

#include "prm/field.h"
#include "prm/ifc.h"
#include "prm/info.h"
