// SPDX-License-Identifier: BSD-3-Clause
// HCASIM_FIELDS(archive, a, b_, ...): lists fields under their own names, without what ends them ("b" for
// b_). For the list_state() of a block or object (model/state/state.h).
#ifndef HCASIM_MODEL_STATE_FIELDS_H
#define HCASIM_MODEL_STATE_FIELDS_H

#include <type_traits>

#define HCASIM_FIELDS(archive, ...) (archive).all(#__VA_ARGS__, __VA_ARGS__)
// The same of fields that saved states have since this version (card/state/version.h): loaded from an earlier
// one they are as new.
#define HCASIM_FIELDS_SINCE(version_of_first, archive, ...)                               \
  do {                                                                                    \
    if constexpr (std::remove_reference_t<decltype(archive)>::kLoads) {                   \
      if ((archive).version() >= (version_of_first)) HCASIM_FIELDS(archive, __VA_ARGS__); \
    } else {                                                                              \
      HCASIM_FIELDS(archive, __VA_ARGS__);                                                \
    }                                                                                     \
  } while (false)
// The same of one that a reset leaves as it is.
#define HCASIM_LASTING_SINCE(version_of_first, archive, name, field)                 \
  do {                                                                               \
    if constexpr (std::remove_reference_t<decltype(archive)>::kLoads) {              \
      if ((archive).version() >= (version_of_first)) (archive).lasting(name, field); \
    } else {                                                                         \
      (archive).lasting(name, field);                                                \
    }                                                                                \
  } while (false)

#endif
