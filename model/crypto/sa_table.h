// SPDX-License-Identifier: BSD-3-Clause
// A function's security associations of one kind, by the number of the object.
#ifndef HCASIM_MODEL_CRYPTO_SA_TABLE_H
#define HCASIM_MODEL_CRYPTO_SA_TABLE_H

#include <cstdint>
#include <map>

#include "model/state/fields.h"

namespace hcasim {

template <class Sa>
class SaTable {
 public:
  // Null: there is none of that number.
  Sa* find(std::uint32_t number) {
    const auto it = sas_.find(number);
    return it == sas_.end() ? nullptr : &it->second;
  }
  void create(std::uint32_t number, const Sa& sa) { sas_[number] = sa; }
  void destroy(std::uint32_t number) { sas_.erase(number); }
  void clear() { sas_.clear(); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, sas_);
  }

 private:
  std::map<std::uint32_t, Sa> sas_;
};

}  // namespace hcasim
#endif
