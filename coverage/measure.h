// SPDX-License-Identifier: BSD-3-Clause
/// From the instructions that ran in a guest to the lines, branches and functions of a module's or a
/// library's source.
#pragma once

#include <string>
#include <vector>

#include "coverage/binary.h"
#include "coverage/executed.h"
#include "coverage/flow.h"
#include "coverage/tracefile.h"

namespace hcasim::coverage {

/// The instructions of one binary that ran.
struct Ran {
  Steps steps;
  std::size_t loads = 0;  ///< times that the guest loaded it, at places of their own
  std::size_t foreign =
      0;  ///< instructions at its places that are not its own: of a module that was there before or after it
};

/// Of the module `binary`, which the guest calls `name`.
Ran ran_of_module(const Binary& binary, const std::string& name, const Executed& executed,
                  const std::vector<Load>& loads);
/// Of a library, whose index in the plugin's list is `index`.
Ran ran_of_library(const Binary& binary, unsigned index, const Executed& executed);

/// Lines and functions in the folders that the binary was compiled from (Binary::homes) and in folders and
/// files of `also`; with how often they ran. A line's count is that of the most frequent statement that
/// begins there.
Coverage measure(const Binary& binary, const Ran& ran, const std::vector<std::string>& also = {});

/// An entry for each page of code of these libraries, for the plugin; indices from 1 in this order.
std::vector<page_entry> library_pages(const std::vector<std::string>& paths);

}  // namespace hcasim::coverage
