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
#include <vector>

#include "firmware-stub/objects/ref.h"
#include "model/state/fields.h"

namespace hcasim::fw {

// Numbers first .. first + count - 1; 0 means "none". The first one that is given out is `start` further on.
class NumberPool {
 public:
  NumberPool() = default;
  NumberPool(std::uint32_t first, std::uint32_t count, std::uint32_t start = 0)
      : first_(first), all_(count), count_(count), made_start_(start), start_(start) {}

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
    return first_ + (start_ + fresh_++) % all_;
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
    if constexpr (Archive::kLoads) {
      start_ = 0;  // of versions before 17, as of all functions
      if (a.version() >= 17) a("start", start_, made_start_);
      a.check(start_ == 0 || start_ < all_, "there is no such number to start with");
    } else {
      a("start", start_, made_start_);
    }
    if constexpr (Archive::kLoads) {
      a.check(fresh_ <= all_ && count_ <= all_ && freed_.size() + used_ == fresh_,
              "the numbers do not add up");
      for (const std::uint32_t n : freed_) a.check(knows(n), "a number was never given out");
    }
  }
  // Of saved states: whether it can have been given out.
  bool knows(std::uint32_t n) const { return n - first_ < all_ && place(n) < fresh_; }
  // Whether all that rest are different ones, which are free.
  template <class IsFree>
  bool all_apart(IsFree is_free) const {
    std::vector<bool> rests(fresh_);
    for (const std::uint32_t n : freed_) {
      if (rests[place(n)] || !is_free(n)) return false;
      rests[place(n)] = true;
    }
    return true;
  }

 private:
  static constexpr std::size_t kRest = 1024;
  // How many had been given out before it, when it was for the first time.
  std::uint32_t place(std::uint32_t n) const { return (n - first_ + all_ - start_) % all_; }

  std::uint32_t first_ = 1, all_ = 0, count_ = 0, fresh_ = 0, used_ = 0;
  std::uint32_t made_start_ = 0, start_ = 0;
  std::deque<std::uint32_t> freed_;
};

// T needs a default constructor. An object stays where it is until it is destroyed.
template <class T>
class Table {
 public:
  Table(std::uint32_t first, std::uint32_t count, std::uint32_t start = 0) : pool_(first, count, start) {}

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

  // At reset, before the objects of any table go: what they refer to, in whichever table it is. What a saved
  // state refers to need not be what commands would have let it.
  template <class Archive>
  void end_references(Archive& a) {
    for_each([&](std::uint32_t, T& object) { object.list_state(a); });
  }

  // (model/state/state.h) The objects by number. Resets want end_references() first, of all tables.
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      slots_.clear();
    } else if constexpr (Archive::kLoads) {
      a.list("numbers", [&](auto read) {
        Numbered one{*this};
        read(one);
      });
    } else if constexpr (Archive::kStores) {
      a.list("numbers", [&](auto write) {
        for (const auto& [number, slot] : in_order()) {
          Numbered one{*this, number, slot};
          write(one);
        }
      });
    } else {
      const std::map<std::uint32_t, Slot*> order = in_order();
      for (const auto& [number, slot] : order)
        if (slot->object) a(std::to_string(number).c_str(), *slot->object);
      GivenOut given{order};
      a("given_out", given);
    }
    a("pool", pool_);
    if constexpr (Archive::kLoads) {
      std::uint32_t used = 0;
      for (const auto& [number, slot] : slots_) {
        a.check(pool_.knows(number), "an object has a number that was never given out");
        used += slot.object ? 1 : 0;
      }
      a.check(used == pool_.used() && pool_.all_apart([this](std::uint32_t n) { return find(n) == nullptr; }),
              "a number is in use and given back");
    }
  }

 private:
  struct Slot {
    std::uint32_t generation = 0;
    std::unique_ptr<T> object;
  };
  std::map<std::uint32_t, Slot*> in_order() {
    std::map<std::uint32_t, Slot*> order;
    for (auto& [number, slot] : slots_) order.emplace(number, &slot);
    return order;
  }
  // A slot of a saved state, behind its number.
  struct Numbered {
    Table& table;
    std::uint32_t number = 0;
    Slot* slot = nullptr;

    template <class Archive>
    void list_state(Archive& a) {
      a("number", number);
      if constexpr (Archive::kLoads) {
        const auto [it, fresh] = table.slots_.try_emplace(number);
        a.check(fresh, "a number is there twice");
        slot = &it->second;
      }
      a("generation", slot->generation);
      a("object", slot->object);
    }
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
