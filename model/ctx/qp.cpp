// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/qp.h"
#include "model/state/state.h"

namespace hcasim {

ResponderState new_responder_state() { return {}; }

void QpTable::clear() { reset_state(*this); }

}  // namespace hcasim
