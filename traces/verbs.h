// SPDX-License-Identifier: BSD-3-Clause
/// The verbs of hcasim-trace.
#pragma once

#include <string>

namespace hcasim::traces {

/// Runs `hcasim-trace VERB ...`. Returns whether argv[1] is a verb; `*status` is then the exit status. 0:
/// done; 1: diff: the traces diverge; 2: the command line or a file is wrong; 3: the file is damaged, and
/// what could be read was used.
bool run_verb(int argc, char** argv, int* status);
/// "list, show, ..."
std::string verb_names();

int path_main(int argc, char** argv);
int report_main(int argc, char** argv);

}  // namespace hcasim::traces
