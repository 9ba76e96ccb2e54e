# SPDX-License-Identifier: BSD-3-Clause
# The C API of the HCA: what the QEMU shim, the bare driver, tests and benchmarks link. They see hca_api.h alone.
add_library(hcasim_api STATIC
  ${CMAKE_CURRENT_LIST_DIR}/coupling.cpp ${CMAKE_CURRENT_LIST_DIR}/fabric.cpp ${CMAKE_CURRENT_LIST_DIR}/far_end.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hca_api.cpp
  ${CMAKE_CURRENT_LIST_DIR}/instance.cpp ${CMAKE_CURRENT_LIST_DIR}/options.cpp ${CMAKE_CURRENT_LIST_DIR}/recording.cpp ${CMAKE_CURRENT_LIST_DIR}/replay.cpp
  ${CMAKE_CURRENT_LIST_DIR}/simulation.cpp ${CMAKE_CURRENT_LIST_DIR}/tracing.cpp ${CMAKE_CURRENT_LIST_DIR}/wires.cpp)
hcasim_room(hcasim_api qemu-device)
hcasim_whole_part(hcasim_api)
target_link_libraries(hcasim_api PRIVATE hcasim_firmware hcasim_model hcasim_traces hcasim_wire)
target_compile_definitions(hcasim_api PRIVATE HCASIM_PROFILE_DIR="${CMAKE_SOURCE_DIR}/model/profiles")
target_sources(hcasim_api INTERFACE
  $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_SOURCE_DIR}/model/sc_main.cpp>)
