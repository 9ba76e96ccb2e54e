// SPDX-License-Identifier: BSD-3-Clause
// HCASIM_FIELDS(archive, a, b_, ...): lists fields under their own names, without what ends them ("b" for
// b_). For the list_state() of a block or object (model/state/state.h).
#ifndef HCASIM_MODEL_STATE_FIELDS_H
#define HCASIM_MODEL_STATE_FIELDS_H

#define HCASIM_FIELDS(archive, ...) (archive).all(#__VA_ARGS__, __VA_ARGS__)

#endif
