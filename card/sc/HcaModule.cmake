# SPDX-License-Identifier: BSD-3-Clause
#
# The card as a SystemC module (docs/systemc.md).
add_library(hcasim_sc STATIC sc/hca_module.cpp sc/inner.cpp sc/vcd.cpp)
set(inc ${CMAKE_BINARY_DIR}/inc)
file(MAKE_DIRECTORY ${inc}/hcasim_sc/card/sc)
foreach(header hca_module.h wire_if.h)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/sc/${header} ${inc}/hcasim_sc/card/sc/${header} SYMBOLIC)
endforeach()
target_include_directories(hcasim_sc PUBLIC ${inc}/hcasim_sc PRIVATE ${inc}/hcasim_card)
target_link_libraries(hcasim_sc PRIVATE hcasim_api hcasim_pci hcasim_firmware hcasim_model hcasim_traces hcasim_wire)
