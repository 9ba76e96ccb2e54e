// SPDX-License-Identifier: BSD-3-Clause
/// `hcasim-trace rules`: the rules that were broken, each with what was recorded around it.
#pragma once

namespace hcasim::traces {

/// The verb's main program; statuses as run_verb() has them.
int rules_main(int argc, char** argv);

}  // namespace hcasim::traces
