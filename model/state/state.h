// SPDX-License-Identifier: BSD-3-Clause
// State as data: each block and object lists its run-time state once, in a member
//
//   template <class Archive>
//   void list_state(Archive& a) {
//     a("free_at", free_at_);              // back to 0 at reset
//     a("full_from", full_from_, kNever);  // back to kNever
//     a.kept("slots", slots_);             // as many elements as before, each of them reset
//     a.lasting("wqes", wqes_);            // statistics of the whole life: not reset
//     HCASIM_FIELDS(a, head_, tail_);      // several, under their own names
//   }
//
// and everything that goes over all state uses that list: reset (StateReset), digests (StateDigest), listings
// by name (StateList), saved states (card/state). What is not state stays out: configuration, references to
// other blocks, scratch memory, caches of what can be computed again.
//
// What is kept in another form than a reader could fill asks the archive: kResets; kStores (it saves or
// loads: list(), packet(), reference(), bytes() of card/state/save.h and load.h), kLoads. What follows from
// listed fields is computed again there if kLoads.
//
// A plain struct (an aggregate) is reset by its own initializers; its list is for the others.
// Fields may be numbers, bools, enumerations, strings, types with a list_state() of their own, and standard
// containers, optionals and owning pointers of such. A pointer that owns nothing is not state: what it points
// to has a number, and that is.
#ifndef HCASIM_MODEL_STATE_STATE_H
#define HCASIM_MODEL_STATE_STATE_H

#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "model/state/fields.h"

namespace hcasim {

namespace state {

template <class T, class Archive, class = void>
struct Lists : std::false_type {};
template <class T, class Archive>
struct Lists<T, Archive, std::void_t<decltype(std::declval<T&>().list_state(std::declval<Archive&>()))>>
    : std::true_type {};

template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t n>
struct IsArray<std::array<T, n>> : std::true_type {};
template <class T>
struct IsBitset : std::false_type {};
template <std::size_t n>
struct IsBitset<std::bitset<n>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsOwner : std::false_type {};
template <class T, class D>
struct IsOwner<std::unique_ptr<T, D>> : std::true_type {};
template <class T>
struct IsOwner<std::shared_ptr<T>> : std::true_type {};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};
template <class T, class = void>
struct IsContainer : std::false_type {};
template <class T>
struct IsContainer<T, std::void_t<decltype(std::declval<T&>().begin()), decltype(std::declval<T&>().size()),
                                  decltype(std::declval<T&>().clear())>> : std::true_type {};

template <class T, class = void>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<T, std::void_t<typename T::mapped_type>> : std::true_type {};
template <class T, class = void>
struct IsSet : std::false_type {};
template <class T>
struct IsSet<T, std::void_t<typename T::key_type>> : std::bool_constant<!IsMap<T>::value> {};

template <class T>
constexpr bool kNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// Objects that others refer to by where they are in the lists: their class names, as ReferredAs, itself or
// that one of its bases by which it may be referred to as well.
template <class T, class = void>
struct Referable : std::false_type {};
template <class T>
struct Referable<T, std::void_t<typename T::ReferredAs>> : std::true_type {
  using Base = typename T::ReferredAs;
};

// Whether an enumeration has that value: those that end in kCount say so, others may have any.
template <class T, class = void>
struct HasCount : std::false_type {};
template <class T>
struct HasCount<T, std::void_t<decltype(T::kCount)>> : std::true_type {};
template <class T>
constexpr bool valid(T v) {
  if constexpr (HasCount<T>::value)
    return static_cast<std::uint64_t>(v) < static_cast<std::uint64_t>(T::kCount);
  else
    return true;
}

template <class T, class = void>
struct IsUnordered : std::false_type {};
template <class T>
struct IsUnordered<T, std::void_t<typename T::hasher>> : std::true_type {};

template <class K, class V>
const K& key_of(const std::pair<const K, V>& element) {
  return element.first;
}
template <class K>
const K& key_of(const K& element) {
  return element;
}
// The elements of an unordered container by their keys, which is an order that does not depend on its
// history.
template <class T, class Visit>
void visit_in_order(T& field, Visit visit) {
  std::map<typename T::key_type, typename T::iterator> order;
  for (auto it = field.begin(); it != field.end(); ++it) order.emplace(key_of(*it), it);
  for (auto& [key, it] : order) visit(*it);
}

// A structure of bytes on a wire or in host memory (WQE segments, addresses): no padding, no pointer.
template <class T>
constexpr bool kBytes =
    std::is_class_v<T>&& std::has_unique_object_representations_v<T>&& std::is_trivially_copyable_v<T> &&
    !IsArray<T>::value && !IsBitset<T>::value;

template <class T>
struct IsRandom : std::false_type {};
template <>
struct IsRandom<std::mt19937_64> : std::true_type {};

// Numbers that lie side by side in memory, without padding (not bits, whose references are objects): they are
// read as bytes.
template <class T, class = void>
struct PlainBytes : std::false_type {};
template <class T>
struct PlainBytes<
    T, std::void_t<std::enable_if_t<std::is_same_v<typename T::reference, typename T::value_type&>>,
                   decltype(std::declval<T&>().data())>>
    : std::bool_constant<std::has_unique_object_representations_v<typename T::value_type> &&
                         kNumber<typename T::value_type>> {};

// What archives have in common: several fields in one call, their names in one string as HCASIM_FIELDS has
// them.
template <class Archive>
class Fields {
 public:
  template <class... T>
  void all(const char* names, T&... fields) {
    (one(names, fields), ...);
  }
  // What f lists came from other cards: functions of packets that have come in are theirs.
  template <class F>
  void from_other_cards(F f) {
    f();
  }

 private:
  template <class T>
  void one(const char*& names, T& field) {
    while (*names == ' ' || *names == ',') ++names;
    const char* end = names;
    while (*end != '\0' && *end != ',') ++end;
    const char* last = end != names && end[-1] == '_' ? end - 1 : end;
    static_cast<Archive&> (*this)(std::string(names, last).c_str(), field);
    names = end;
  }
};

// Where an archive is among the lists, such as "port.tx.free_at".
class Path {
 public:
  template <class F>
  void within(const std::string& name, F f) {
    const std::size_t len = text_.size();
    if (len != 0) text_ += '.';
    text_ += name;
    f();
    text_.resize(len);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace state

// Takes state back to what it is at power-on.
class StateReset : public state::Fields<StateReset> {
 public:
  static constexpr bool kResets = true, kStores = false, kLoads = false;

  template <class T>
  void operator()(const char*, T& field) {
    reset(field);
  }
  template <class T, class Initial>
  void operator()(const char*, T& field, const Initial& initial) {
    field = static_cast<T>(initial);
  }
  // Counts on over a reset.
  template <class T>
  void lasting(const char*, T&) {}
  template <class T>
  void kept(const char*, T& elements) {
    for (auto&& element : elements) {
      using Element = std::remove_reference_t<decltype(element)>;
      if constexpr (std::is_class_v<Element> || std::is_arithmetic_v<Element> || std::is_enum_v<Element>)
        reset(element);
    }
  }

 private:
  template <class T>
  void reset(T& field) {
    // A plain struct says its initial values itself, also where it lists them.
    if constexpr (state::Lists<T, StateReset>::value && !std::is_aggregate_v<T>)
      field.list_state(*this);
    else if constexpr (state::IsArray<T>::value)
      for (auto& element : field) reset(element);
    else if constexpr (state::IsBitset<T>::value || state::IsOptional<T>::value || state::IsOwner<T>::value)
      field.reset();
    else if constexpr (state::IsContainer<T>::value)
      field.clear();
    else
      field = T{};
  }
};

// A number for all state that is listed: equal for equal state, whatever the host, its addresses and the
// order in which memory was allocated. lasting: with what a reset leaves as it is.
class StateDigest : public state::Fields<StateDigest> {
 public:
  static constexpr bool kResets = false, kStores = false, kLoads = false;

  explicit StateDigest(bool lasting = true) : lasting_(lasting) {}
  template <class T>
  void operator()(const char* name, T& field) {
    bytes(name, std::strlen(name) + 1);
    add(field);
  }
  template <class T, class Initial>
  void operator()(const char* name, T& field, const Initial&) {
    (*this)(name, field);
  }
  template <class T>
  void lasting(const char* name, T& field) {
    if (lasting_) (*this)(name, field);
  }
  template <class T>
  void kept(const char* name, T& elements) {
    (*this)(name, elements);
  }
  std::uint64_t value() const { return hash_; }

  // For types of other libraries.
  void bytes(const void* data, std::size_t len) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < len; ++i) hash_ = (hash_ ^ p[i]) * 0x100000001b3ULL;  // FNV-1a
  }
  void number(std::uint64_t v) {
    hash_ = (hash_ ^ v) * 0x9e3779b97f4a7c15ULL;
    hash_ ^= hash_ >> 29;
  }

 private:
  template <class T>
  void add(T& field) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_floating_point_v<Plain>) {
      std::uint64_t bits = 0;
      static_assert(sizeof field <= sizeof bits);
      std::memcpy(&bits, &field, sizeof field);
      number(bits);
    } else if constexpr (state::kNumber<Plain>) {
      number(static_cast<std::uint64_t>(field));
    } else if constexpr (state::Lists<Plain, StateDigest>::value) {
      const_cast<Plain&>(field).list_state(*this);  // keys of maps are const
    } else if constexpr (state::IsBitset<Plain>::value) {
      for (std::size_t i = 0; i < field.size(); ++i)
        if (field[i]) number(i);
      number(field.size());
    } else if constexpr (state::IsRandom<Plain>::value) {
      std::ostringstream text;
      text << field;
      bytes(text.str().data(), text.str().size());
    } else if constexpr (state::IsPair<Plain>::value) {
      add(field.first);
      add(field.second);
    } else if constexpr (state::IsUnordered<Plain>::value) {
      std::uint64_t sum = 0;  // whatever the order
      for (auto& element : field) {
        StateDigest one(lasting_);
        one.add(element);
        sum += one.value();
      }
      number(field.size());
      number(sum);
    } else if constexpr (state::kBytes<Plain>) {
      bytes(&field, sizeof field);
    } else if constexpr (state::IsOptional<Plain>::value || state::IsOwner<Plain>::value) {
      number(field ? 1 : 0);
      if (field) add(*field);
    } else if constexpr (std::is_same_v<Plain, std::string> || state::PlainBytes<Plain>::value) {
      number(field.size());
      bytes(field.data(), field.size() * sizeof(*field.data()));
    } else {
      number(field.size());
      for (auto&& element : field) {
        if constexpr (std::is_class_v<std::remove_reference_t<decltype(element)>> &&
                      !std::is_lvalue_reference_v<decltype(element)>)
          number(static_cast<bool>(element) ? 1 : 0);  // std::vector<bool>
        else
          add(element);
      }
    }
  }

  const bool lasting_;
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

// Every number of the state with its path, such as "port.tx.free_at", for whoever looks for a difference.
// Sink: called with (const std::string& path, const std::string& value).
template <class Sink>
class StateList : public state::Fields<StateList<Sink>> {
 public:
  static constexpr bool kResets = false, kStores = false, kLoads = false;

  explicit StateList(Sink sink) : sink_(std::move(sink)) {}
  template <class T>
  void operator()(const char* name, T& field) {
    path_.within(name, [&] { add(field); });
  }
  template <class T, class Initial>
  void operator()(const char* name, T& field, const Initial&) {
    (*this)(name, field);
  }
  template <class T>
  void lasting(const char* name, T& field) {
    (*this)(name, field);
  }
  template <class T>
  void kept(const char* name, T& elements) {
    (*this)(name, elements);
  }
  void bytes(const void* data, std::size_t len) {
    static const char* const digits = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < len; ++i) {
      const unsigned byte = static_cast<const unsigned char*>(data)[i];
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
    sink_(path_.text(), text);
  }
  void number(std::uint64_t v) { sink_(path_.text(), std::to_string(v)); }

 private:
  template <class T>
  void add(T& field) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (state::kNumber<Plain>) {
      if constexpr (std::is_enum_v<Plain>)
        sink_(path_.text(), std::to_string(static_cast<std::underlying_type_t<Plain>>(field)));
      else
        sink_(path_.text(), std::to_string(field));
    } else if constexpr (state::Lists<Plain, StateList>::value) {
      const_cast<Plain&>(field).list_state(*this);  // keys of maps are const
    } else if constexpr (state::IsBitset<Plain>::value) {
      for (std::size_t i = 0; i < field.size(); ++i)
        if (field[i]) path_.within(std::to_string(i), [&] { sink_(path_.text(), "1"); });
    } else if constexpr (state::IsRandom<Plain>::value) {
      std::ostringstream text;
      text << field;
      sink_(path_.text(), text.str());
    } else if constexpr (state::IsPair<Plain>::value) {
      path_.within("key", [&] { add(field.first); });
      path_.within("value", [&] { add(field.second); });
    } else if constexpr (state::kBytes<Plain>) {
      bytes(&field, sizeof field);
    } else if constexpr (state::IsOptional<Plain>::value || state::IsOwner<Plain>::value) {
      if (field) add(*field);
    } else if constexpr (std::is_same_v<Plain, std::string>) {
      sink_(path_.text(), field);
    } else if constexpr (state::PlainBytes<Plain>::value) {
      if (field.size() != 0) bytes(field.data(), field.size() * sizeof(*field.data()));
    } else if constexpr (state::IsUnordered<Plain>::value) {
      std::size_t i = 0;
      state::visit_in_order(field,
                            [&](auto& element) { path_.within(std::to_string(i++), [&] { add(element); }); });
    } else {
      std::size_t i = 0;
      for (auto&& element : field) {
        path_.within(std::to_string(i++), [&] {
          if constexpr (std::is_class_v<std::remove_reference_t<decltype(element)>> &&
                        !std::is_lvalue_reference_v<decltype(element)>)
            sink_(path_.text(), static_cast<bool>(element) ? "1" : "0");  // std::vector<bool>
          else
            add(element);
        });
      }
    }
  }

  Sink sink_;
  state::Path path_;
};

template <class T>
void reset_state(T& t) {
  StateReset a;
  t.list_state(a);
}
template <class T>
std::uint64_t digest_state(T& t, bool lasting = true) {
  StateDigest a(lasting);
  t.list_state(a);
  return a.value();
}
// sink: called with the path and the value of each number.
template <class T, class Sink>
void print_state(T& t, Sink sink) {
  StateList<Sink> a(std::move(sink));
  t.list_state(a);
}

}  // namespace hcasim
#endif
