// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/qp.h"
#include "model/state/state.h"

namespace hcasim {

void QpTable::clear() { reset_state(*this); }

}  // namespace hcasim
