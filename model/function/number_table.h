// SPDX-License-Identifier: BSD-3-Clause
// A function's objects of one kind, by the number that its driver knows them by.
#ifndef HCASIM_MODEL_FUNCTION_NUMBER_TABLE_H
#define HCASIM_MODEL_FUNCTION_NUMBER_TABLE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/function/id.h"
#include "model/state/fields.h"
#include "model/state/state.h"

namespace hcasim {

// kNumber: where a T holds its number; it has a `function`, too. Numbers are below kEnd, at most 2^24: a
// place is kept for each up to the highest one, so that it is no more than firmware gives out.
template <class T, std::uint32_t T::*kNumber, std::uint32_t kEnd = 1u << 20>
class NumberTable {
 public:
  explicit NumberTable(FunctionId function = 0) : function_(function) {}

  FunctionId function() const { return function_; }
  // Null: the number is taken, or out of range.
  T* create(std::uint32_t number) {
    if (number >= kEnd || find(number)) return nullptr;
    if (number >= table_.size()) table_.resize(number + 1);
    reached_ = std::max(reached_, number + 1);
    table_[number] = std::make_unique<T>();
    T* const made = table_[number].get();
    made->*kNumber = number;
    made->function = function_;
    ++count_;
    return made;
  }
  T* find(std::uint32_t number) const { return number < table_.size() ? table_[number].get() : nullptr; }
  // False: there is none.
  bool destroy(std::uint32_t number) {
    if (!find(number)) return false;
    table_[number].reset();
    --count_;
    return true;
  }
  void clear() { reset_state(*this); }
  std::size_t count() const { return count_; }
  template <class F>
  void for_each(F f) const {
    for (const auto& object : table_)
      if (object) f(*object);
  }

  template <class Archive>
  void list_state(Archive& a) {
    // How far numbers have come shows in digests, whether there are such objects now or not.
    if constexpr (Archive::kStores) a("size", reached_);
    if constexpr (Archive::kResets) {
      std::vector<std::unique_ptr<T>>().swap(table_);
      reached_ = 0;
      count_ = 0;
    } else if constexpr (Archive::kLoads) {
      a.check(reached_ <= kEnd, "there are no such numbers");
      a.list("objects", [&](auto read) {
        Numbered one{*this};
        read(one);
      });
    } else if constexpr (Archive::kStores) {
      a.list("objects", [&](auto write) {
        for (const auto& object : table_) {
          if (!object) continue;
          Numbered one{*this, object.get()};
          write(one);
        }
      });
    } else {
      table_.resize(reached_);
      HCASIM_FIELDS(a, table_, count_);
    }
  }

 private:
  // An object of a saved state, behind its number.
  struct Numbered {
    NumberTable& table;
    T* object = nullptr;

    template <class Archive>
    void list_state(Archive& a) {
      std::uint32_t number = object ? object->*kNumber : 0;
      a("number", number);
      if constexpr (Archive::kLoads) {
        object = table.create(number);
        a.check(object != nullptr, "the number is out of range or there twice");
      }
      object->list_state(a);
      if constexpr (Archive::kLoads) a.check(object->*kNumber == number, "the object has another number");
    }
  };

  FunctionId function_;
  std::vector<std::unique_ptr<T>> table_;
  std::uint32_t reached_ = 0;  // behind the highest number that there has been
  std::size_t count_ = 0;
};

}  // namespace hcasim
#endif
