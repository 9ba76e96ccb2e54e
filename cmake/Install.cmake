# SPDX-License-Identifier: BSD-3-Clause
#
# What other programs use: libhcasim.so, which is the card as a SystemC module (card/sc), the C API (card/api) and the
# bare driver (driver/bare, driver/sc), with headers, profiles, a CMake package and a pkg-config file (docs/systemc.md).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(hcasim SHARED ${CMAKE_CURRENT_LIST_DIR}/libhcasim.cpp)
set(_parts hcasim_sc hcasim_api hcasim_driver_sc hcasim_bare)
foreach(part ${_parts})
  target_include_directories(hcasim INTERFACE $<BUILD_INTERFACE:$<TARGET_PROPERTY:${part},INTERFACE_INCLUDE_DIRECTORIES>>)
endforeach()
target_include_directories(hcasim INTERFACE $<BUILD_INTERFACE:$<TARGET_PROPERTY:hcasim_prm,INTERFACE_INCLUDE_DIRECTORIES>>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/hcasim>)
target_link_libraries(hcasim PRIVATE ${_parts} hcasim_prm)
# What others call of C++ is to be seen in it.
set_target_properties(hcasim_sc hcasim_bare hcasim_driver_sc PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
# All of these, used within the library or not; the bare driver calls the C API, which brings that in. (In _parts, who
# links another one of them comes first, or CMake repeats the other.)
set_property(TARGET hcasim PROPERTY LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,hcasim_sc,hcasim_bare,hcasim_driver_sc")
find_library(HCASIM_SYSTEMC_LIBRARY systemc REQUIRED)  # an installed package looks for it itself
target_link_libraries(hcasim INTERFACE $<BUILD_INTERFACE:${HCASIM_SYSTEMC_LIBRARY}>)
target_compile_features(hcasim INTERFACE cxx_std_17)
set_target_properties(hcasim PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME hcasim)

# Relative to the library, so that the installed tree may be moved.
file(RELATIVE_PATH _profiles /${CMAKE_INSTALL_LIBDIR} /${CMAKE_INSTALL_DATADIR}/hcasim/profiles)
set_property(SOURCE ${CMAKE_SOURCE_DIR}/card/api/parts.cpp TARGET_DIRECTORY hcasim_api APPEND
             PROPERTY COMPILE_DEFINITIONS HCASIM_PROFILES_FROM_LIBRARY="${_profiles}")

set(_include ${CMAKE_INSTALL_INCLUDEDIR}/hcasim)
install(TARGETS hcasim EXPORT hcasim-targets COMPONENT hcasim
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT hcasim)
install(FILES card/sc/hca_module.h card/sc/wire_if.h DESTINATION ${_include}/card/sc COMPONENT hcasim)
install(FILES card/api/hca_api.h DESTINATION ${_include}/card/api COMPONENT hcasim)
install(DIRECTORY driver/bare driver/sc DESTINATION ${_include}/driver COMPONENT hcasim FILES_MATCHING PATTERN "*.h")
install(DIRECTORY prm DESTINATION ${_include} COMPONENT hcasim FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${CMAKE_BINARY_DIR}/gen/prm/ DESTINATION ${_include} COMPONENT hcasim FILES_MATCHING PATTERN "*.h")
install(DIRECTORY model/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/hcasim COMPONENT hcasim)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/hcasim COMPONENT hcasim)
install(EXPORT hcasim-targets NAMESPACE hcasim:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hcasim COMPONENT hcasim)
configure_package_config_file(cmake/hcasim-config.cmake.in ${CMAKE_BINARY_DIR}/cmake/hcasim-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hcasim)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/hcasim-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cmake/hcasim-config.cmake ${CMAKE_BINARY_DIR}/cmake/hcasim-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hcasim COMPONENT hcasim)
configure_file(cmake/hcasim.pc.in ${CMAKE_BINARY_DIR}/cmake/hcasim.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cmake/hcasim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT hcasim)
