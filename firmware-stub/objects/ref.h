// SPDX-License-Identifier: BSD-3-Clause
// Counted references between the firmware's objects. An object that is referred to is not destroyed by a
// command; the count follows from the references that exist, wherever they lie.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_REF_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_REF_H

#include <cstdint>
#include <utility>

#include "model/state/fields.h"

namespace hcasim::fw {

// Base of what can be referred to. Stays where it is as long as references exist.
class Referred {
 public:
  using ReferredAs = Referred;  // (model/state/state.h)

  Referred() = default;
  Referred(const Referred&) = delete;
  Referred& operator=(const Referred&) = delete;

  std::uint32_t refs() const { return refs_; }
  bool referred() const { return refs_ != 0; }
  // Its number (device memory: its first byte), by which references to it are listed as state. Given once, by
  // who makes it.
  void set_number(std::uint64_t number) { number_ = number; }
  std::uint64_t number() const { return number_; }

  // The count is lasting: it follows from the references, which end one by one.
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kStores)
      a("number", number_);
    else
      a.lasting("refs", refs_);
  }

 private:
  template <class T>
  friend class Ref;
  std::uint32_t refs_ = 0;
  std::uint64_t number_ = 0;
};

// A reference, held by the object that refers; null refers to nothing. The target must outlive it.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* target) : target_(target) {
    if (target_ != nullptr) ++counted()->refs_;
  }
  Ref(Ref&& o) noexcept : target_(std::exchange(o.target_, nullptr)) {}
  Ref& operator=(Ref&& o) noexcept {
    if (this != &o) {
      reset();
      target_ = std::exchange(o.target_, nullptr);
    }
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    if (target_ != nullptr) --counted()->refs_;
    target_ = nullptr;
  }
  T* get() const { return target_; }
  explicit operator bool() const { return target_ != nullptr; }

  // By number, never by where the object lies; 0: none. In saved states by where it is in the lists. One that
  // is read back stays where it is until all is there.
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets)
      reset();
    else if constexpr (Archive::kLoads)
      a.template reference<T>([this](T* target) { *this = Ref(target); });
    else if constexpr (Archive::kStores)
      a.reference(*this);
    else
      a.number(target_ != nullptr ? static_cast<const Referred*>(target_)->number() : 0);
  }

 private:
  Referred* counted() const { return target_; }

  T* target_ = nullptr;
};

}  // namespace hcasim::fw
#endif
