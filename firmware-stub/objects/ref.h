// SPDX-License-Identifier: BSD-3-Clause
// Counted references between the firmware's objects. An object that is referred to is not destroyed by a
// command; the count follows from the references that exist, wherever they lie.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_REF_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_REF_H

#include <cstdint>
#include <utility>

namespace hcasim::fw {

// Base of what can be referred to. Stays where it is as long as references exist.
class Referred {
 public:
  Referred() = default;
  Referred(const Referred&) = delete;
  Referred& operator=(const Referred&) = delete;

  std::uint32_t refs() const { return refs_; }
  bool referred() const { return refs_ != 0; }

 private:
  template <class T>
  friend class Ref;
  std::uint32_t refs_ = 0;
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

 private:
  Referred* counted() const { return target_; }

  T* target_ = nullptr;
};

}  // namespace hcasim::fw
#endif
