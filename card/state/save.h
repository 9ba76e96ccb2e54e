// SPDX-License-Identifier: BSD-3-Clause
// Writes listed state (model/state/state.h) as tagged items: each field under its name, structures as groups,
// containers as lists. What has no order by itself is put into one, so that equal states are equal bytes.
#ifndef HCASIM_CARD_STATE_SAVE_H
#define HCASIM_CARD_STATE_SAVE_H

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>

#include "card/state/tagged.h"
#include "model/state/state.h"

namespace hcasim::saved {

// Paths of what is referred to (state::Referable), such as "firmware.functions.0.objects.pds.5"; found by a
// first pass over the lists.
using Names = std::unordered_map<const void*, std::string>;

class StateNames : public state::Fields<StateNames> {
 public:
  static constexpr bool kResets = false, kStores = true, kLoads = false, kNames = true;

  explicit StateNames(Names& names) : names_(names) {}
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
  template <class F>
  void list(const char* name, F each) {
    std::size_t i = 0;
    path_.within(name, [&] {
      each([&](auto& element) { path_.within(std::to_string(i++), [&] { add(element); }); });
    });
  }
  template <class Packet>
  void packet(Packet&) {}
  template <class Ref>
  void reference(Ref&) {}
  void bytes(const char*, const void*, std::size_t) {}

 private:
  template <class T>
  void add(T& field) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (state::Referable<Plain>::value) names_.emplace(&field, path_.text());
    if constexpr (state::Lists<Plain, StateNames>::value) {
      const_cast<Plain&>(field).list_state(*this);
    } else if constexpr (state::IsPair<Plain>::value) {
      add(field.second);
    } else if constexpr (state::kNumber<Plain> || state::IsBitset<Plain>::value ||
                         state::IsRandom<Plain>::value || state::kBytes<Plain> ||
                         std::is_same_v<Plain, std::string> || state::PlainBytes<Plain>::value) {
      // nothing in it that could be referred to
    } else if constexpr (state::IsOptional<Plain>::value || state::IsOwner<Plain>::value) {
      if (field) add(*field);
    } else if constexpr (state::IsMap<Plain>::value) {
      for (auto& [key, value] : field) path_.within(key_text(key), [&, &v = value] { add(v); });
    } else if constexpr (state::IsContainer<Plain>::value || state::IsArray<Plain>::value) {
      std::size_t i = 0;
      for (auto&& element : field) {
        if constexpr (std::is_lvalue_reference_v<decltype(element)>)
          path_.within(std::to_string(i), [&, &e = element] { add(e); });
        ++i;
      }
    }
  }
  template <class Key>
  static std::string key_text(const Key& key) {
    if constexpr (state::kNumber<Key>)
      return std::to_string(static_cast<std::uint64_t>(key));
    else
      return "of";  // nothing below a key of another kind is referred to by two
  }

  Names& names_;
  state::Path path_;
};

class StateSave : public state::Fields<StateSave> {
 public:
  static constexpr bool kResets = false, kStores = true, kLoads = false, kNames = false;

  StateSave(TaggedWriter& to, const Names& names) : to_(to), names_(names) {}

  template <class T>
  void operator()(const char* name, T& field) {
    add(name, field);
  }
  template <class T, class Initial>
  void operator()(const char* name, T& field, const Initial&) {
    add(name, field);
  }
  template <class T>
  void lasting(const char* name, T& field) {
    add(name, field);
  }
  template <class T>
  void kept(const char* name, T& elements) {
    add(name, elements);
  }
  // Elements that are in no container: each(f) calls f with every one of them.
  template <class F>
  void list(const char* name, F each) {
    to_.open(name, Type::kList);
    each([&](auto& element) { add("", element); });
    to_.close();
  }
  void bytes(const char* name, const void* data, std::size_t len) { to_.bytes(name, data, len); }
  // A packet that may be shared: written once, and then by its number.
  template <class Ref>
  void packet(Ref& ref) {
    if (!ref) return to_.number("number", 0);
    const auto [it, fresh] = packets_.try_emplace(&*ref, packets_.size() + 1);
    to_.number("number", it->second);
    if (fresh) add("packet", *ref);
  }
  // One to an object that has its own place in the lists: that.
  template <class Ref>
  void reference(Ref& ref) {
    const void* const target = ref.get();
    const auto it = names_.find(target);
    if (target != nullptr && it == names_.end())
      throw StateError("a reference leads to an object that is in no list");
    if (target == nullptr)
      to_.none("to");
    else
      to_.bytes("to", it->second.data(), it->second.size());
  }

 private:
  template <class T>
  void add(std::string_view name, T& field) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_floating_point_v<Plain>) {
      to_.real(name, field);
    } else if constexpr (state::kNumber<Plain>) {
      to_.number(name, static_cast<std::uint64_t>(field));
    } else if constexpr (state::Lists<Plain, StateSave>::value) {
      to_.open(name, Type::kGroup);
      const_cast<Plain&>(field).list_state(*this);  // keys of maps are const
      to_.close();
    } else if constexpr (state::IsBitset<Plain>::value) {
      std::string bits((field.size() + 7) / 8, '\0');
      for (std::size_t i = 0; i < field.size(); ++i)
        if (field[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << i % 8);
      to_.bytes(name, bits.data(), bits.size());
    } else if constexpr (state::IsRandom<Plain>::value) {
      std::ostringstream text;
      text.imbue(std::locale::classic());
      text << field;
      to_.bytes(name, text.str().data(), text.str().size());
    } else if constexpr (state::IsPair<Plain>::value) {
      to_.open(name, Type::kList);
      add("", field.first);
      add("", field.second);
      to_.close();
    } else if constexpr (state::kBytes<Plain>) {
      to_.bytes(name, &field, sizeof field);
    } else if constexpr (state::IsOptional<Plain>::value || state::IsOwner<Plain>::value) {
      if (field)
        add(name, *field);
      else
        to_.none(name);
    } else if constexpr (std::is_same_v<Plain, std::string> || state::PlainBytes<Plain>::value) {
      to_.bytes(name, field.data(), field.size() * sizeof(*field.data()));
    } else if constexpr (state::IsUnordered<Plain>::value) {
      to_.open(name, Type::kList);
      state::visit_in_order(field, [&](auto& element) { add("", element); });
      to_.close();
    } else {
      to_.open(name, Type::kList);
      for (auto&& element : field) {
        if constexpr (std::is_class_v<std::remove_reference_t<decltype(element)>> &&
                      !std::is_lvalue_reference_v<decltype(element)>)
          to_.number("", static_cast<bool>(element) ? 1 : 0);  // std::vector<bool>
        else
          add("", element);
      }
      to_.close();
    }
  }

  TaggedWriter& to_;
  const Names& names_;
  std::unordered_map<const void*, std::uint64_t> packets_;
};

}  // namespace hcasim::saved
#endif
