// SPDX-License-Identifier: BSD-3-Clause
// A table of objects by number: which numbers are in use, their content, and how often each number has been
// given out. A freed number rests behind many others before it is given out again, so that a stale one is
// noticed as "no such object" instead of hitting a stranger.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_TABLE_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_TABLE_H

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "firmware-stub/objects/ref.h"
#include "model/state/fields.h"

namespace hcasim::fw {

// Numbers first .. first + count - 1; 0 means "none".
class NumberPool {
 public:
  NumberPool() = default;
  NumberPool(std::uint32_t first, std::uint32_t count) : first_(first), all_(count), count_(count) {}

  std::uint32_t take() {
    const bool fresh_left = fresh_ < count_;
    if (!freed_.empty() && (!fresh_left || freed_.size() > kRest)) {
      const std::uint32_t n = freed_.front();
      freed_.pop_front();
      ++used_;
      return n;
    }
    if (!fresh_left) return 0;
    ++used_;
    return first_ + fresh_++;
  }
  void give(std::uint32_t n) {
    freed_.push_back(n);
    --used_;
  }
  // No more than that, until reset.
  void limit(std::uint32_t count) { count_ = count; }
  std::uint32_t used() const { return used_; }
  bool full() const { return used_ >= count_; }

  template <class Archive>
  void list_state(Archive& a) {
    a("limit", count_, all_);
    HCASIM_FIELDS(a, fresh_, used_, freed_);
  }

 private:
  static constexpr std::size_t kRest = 1024;
  std::uint32_t first_ = 1, all_ = 0, count_ = 0, fresh_ = 0, used_ = 0;
  std::deque<std::uint32_t> freed_;
};

// T needs a default constructor. An object stays where it is until it is destroyed.
template <class T>
class Table {
 public:
  Table(std::uint32_t first, std::uint32_t count) : pool_(first, count) {}

  // Null when all numbers are in use.
  T* create(std::uint32_t& number) {
    const std::uint32_t n = pool_.take();
    if (n == 0) return nullptr;
    Slot& slot = slots_[n];
    ++slot.generation;
    slot.object = std::make_unique<T>();
    if constexpr (std::is_base_of_v<Referred, T>) slot.object->set_number(n);
    number = n;
    return slot.object.get();
  }
  T* find(std::uint32_t number) {
    auto it = slots_.find(number);
    return it == slots_.end() ? nullptr : it->second.object.get();
  }
  void destroy(std::uint32_t number) {
    auto it = slots_.find(number);
    if (it == slots_.end() || !it->second.object) return;
    it->second.object.reset();
    pool_.give(number);
  }
  // How often the number has been given out since reset.
  std::uint32_t generation(std::uint32_t number) const {
    auto it = slots_.find(number);
    return it == slots_.end() ? 0 : it->second.generation;
  }
  void limit(std::uint32_t count) { pool_.limit(count); }
  bool full() const { return pool_.full(); }
  std::uint32_t count() const { return pool_.used(); }
  template <class F>
  void for_each(F f) {
    for (auto& [number, slot] : slots_)
      if (slot.object) f(number, *slot.object);
  }

  // (model/state/state.h) The objects by number. At reset objects end what they refer to before any of them
  // goes, as they may refer to others of the table.
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      for_each([&](std::uint32_t, T& object) { object.list_state(a); });
      slots_.clear();
    } else {
      std::map<std::uint32_t, Slot*> order;
      for (auto& [number, slot] : slots_) order.emplace(number, &slot);
      for (const auto& [number, slot] : order)
        if (slot->object) a(std::to_string(number).c_str(), *slot->object);
      GivenOut given{order};
      a("given_out", given);
    }
    a("pool", pool_);
  }

 private:
  struct Slot {
    std::uint32_t generation = 0;
    std::unique_ptr<T> object;
  };
  // How often, by number.
  struct GivenOut {
    const std::map<std::uint32_t, Slot*>& order;
    template <class Archive>
    void list_state(Archive& a) {
      for (const auto& [number, slot] : order) a(std::to_string(number).c_str(), slot->generation);
    }
  };
  std::unordered_map<std::uint32_t, Slot> slots_;
  NumberPool pool_;
};

}  // namespace hcasim::fw
#endif
