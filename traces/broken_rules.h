// SPDX-License-Identifier: BSD-3-Clause
/// `hcasim-trace rules`: each violation of a rule, with the records around it.
#pragma once

namespace hcasim::traces {

/// Main program of the verb; exit status as of run_verb().
int rules_main(int argc, char** argv);

}  // namespace hcasim::traces
