// SPDX-License-Identifier: BSD-3-Clause
// Reads what StateSave has written into a card that was made in the same way: field by field in the order of
// the lists, each checked for its name, its type and its range. Anything else is a StateError; then the card
// is in no usable state, and whoever loads goes back to one that is.
#ifndef HCASIM_CARD_STATE_LOAD_H
#define HCASIM_CARD_STATE_LOAD_H

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "card/state/tagged.h"
#include "model/clock.h"
#include "model/state/state.h"

namespace hcasim::saved {

class StateLoad : public state::Fields<StateLoad> {
 public:
  static constexpr bool kResets = false, kStores = true, kLoads = true, kNames = false;

  explicit StateLoad(TaggedReader& from) : from_(from) {}

  template <class T>
  void operator()(const char* name, T& field) {
    load(name, field);
  }
  template <class T, class Initial>
  void operator()(const char* name, T& field, const Initial&) {
    load(name, field);
  }
  template <class T>
  void lasting(const char* name, T& field) {
    load(name, field);
  }
  // As many elements as the card has, which are set and not made.
  template <class T>
  void kept(const char* name, T& elements) {
    if constexpr (state::PlainBytes<T>::value) {
      T loaded{};  // what is refused leaves as many as there were: whoever goes back to the state before
                   // needs them
      load(name, loaded);
      if (loaded.size() != elements.size()) fail("the card has another number of them");
      elements = std::move(loaded);
      return;
    }
    expect(name, Type::kList);
    named(name, [&] {
      within([&] {
        std::size_t i = 0;
        for (auto&& element : elements) indexed(i++, [&] { load("", element); });
      });
    });
  }
  // Elements that go into no container. make(): called for each that there is, with f, which it calls with
  // what the element is to be read into.
  template <class F>
  void list(const char* name, F make) {
    expect(name, Type::kList);
    named(name, [&] {
      within([&] {
        std::size_t i = 0;
        while (!from_.at_end()) indexed(i++, [&] { make([&](auto& element) { load("", element); }); });
      });
    });
  }
  // Bytes of any number, which the reader of the state does something with.
  std::string_view bytes(const char* name) { return expect(name, Type::kBytes).content; }
  // ref: a new packet from make(), or the same as before.
  template <class Ref, class Make>
  void packet(Ref& ref, Make make) {
    const std::uint64_t number = expect("number", Type::kNumber).number;
    auto& seen = packets_.of<Ref>();
    if (number > seen.size() + 1) fail("the packet has not been said");
    if (number == 0) fail("a packet is missing");  // nobody keeps a reference to none
    if (number <= seen.size()) {
      ref = seen[number - 1];
      if (!ref) fail("a packet lies in itself");
    } else {
      seen.emplace_back();
      ref = make();
      load("packet", *ref);
      packets_.of<Ref>()[number - 1] = ref;
    }
    if (!of_this_card(*ref)) fail("the card has no such function: " + std::to_string(ref->function));
  }
  // set: called with the object once all are there.
  template <class Target, class Set>
  void reference(Set set) {
    if (from_.peek().type == Type::kNone) {
      expect("to", Type::kNone);
      return;
    }
    const std::string path(expect("to", Type::kBytes).content);
    // Objects refer to such of their own function alone: others have a life of their own.
    static constexpr std::string_view kObjects = "objects.";
    const std::string own = this->path();
    const std::size_t at = own.find(kObjects);
    if (at != std::string::npos && path.compare(0, at + kObjects.size(), own, 0, at + kObjects.size()) != 0)
      fail(path + " is not this function's");
    later_.push_back([this, path, set, where = from_.path()] {
      const auto it = referred_.find(path);
      if (it == referred_.end()) throw StateError(where + ": there is no " + path);
      if (it->second.type != typeid(Target) && it->second.base != typeid(Target))
        throw StateError(where + ": " + path + " is an object of another kind");
      set(static_cast<Target*>(it->second.object));
    });
  }
  void finish() {
    if (!from_.at_end()) fail("there is more than expected");
    for (const auto& what : later_) what();
    later_.clear();
  }

  std::uint32_t version() const { return from_.version(); }
  // What is read from now on is of a card with so many functions: fields that are one of them must be.
  void functions_are(std::size_t n) { functions_ = n; }
  // What is read from now on is of this one function, whatever it was there.
  void function_is(std::uint64_t f) { function_ = f; }
  template <class F>
  void from_other_cards(F f) {
    foreign_ = true;
    f();
    foreign_ = false;
  }
  // Of checks by whoever is read.
  void check(bool good, const char* what) const {
    if (!good) fail(what);
  }
  [[noreturn]] void fail(const std::string& what) const { from_.fail(what); }

 private:
  struct Referred {
    void* object;
    std::type_index type, base;
  };
  // References to packets, of the one type that there is.
  struct Packets {
    template <class Ref>
    std::vector<Ref>& of() {
      if (!held) held = std::make_shared<std::vector<Ref>>();
      return *static_cast<std::vector<Ref>*>(held.get());
    }
    std::shared_ptr<void> held;
  };

  // One packet may lie in several places, of which some take what other cards have sent.
  template <class Packet>
  bool of_this_card(const Packet& p) const {
    return p.function < functions_ || function_ != kAny || (foreign_ && p.may_be_foreign());
  }
  const Item& expect(std::string_view name, Type type) {
    const Item& item = from_.next();
    if (item.name != name) fail("\"" + std::string(name) + "\" is expected here");
    if (item.type != type)
      fail(std::string("a ") + name_of(type) + " is expected here, and this is a " + name_of(item.type));
    return item;
  }
  template <class F>
  void within(F f) {
    from_.enter();
    f();
    from_.leave();
  }
  // An exception leaves the path as it is: nothing is read after one.
  template <class F>
  void indexed(std::size_t i, F f) {
    steps_.push_back({{}, i});
    f();
    steps_.pop_back();
  }
  template <class F>
  void named(std::string_view name, F f) {
    if (name.empty()) return f();
    steps_.push_back({name, 0});
    f();
    steps_.pop_back();
  }
  // As StateNames has it.
  std::string path() const {
    std::string path;
    for (const Step& step : steps_) {
      if (!path.empty()) path += '.';
      path += step.name.empty() ? std::to_string(step.index) : std::string(step.name);
    }
    return path;
  }

  template <class T>
  void load(std::string_view name, T& field) {
    named(name, [&] { add(name, field); });
  }

  // By names that mean the same everywhere: sizes that shifts go by, in bits.
  static bool in_range(std::string_view name, std::uint64_t v) {
    if (name.substr(0, 4) != "log_") return true;
    if (name == "log_page" || name == "log_dci_errored" || name == "log_space") return v < 64;
    if (name == "log_stride") return v <= 15;
    if (name == "log_rq_stride") return v <= 11;
    return name == "log_sq_size" ? v < 26 : v < 32;
  }

  // Signed numbers of this size are times, in ps: of a clock that has room left for durations behind it.
  void check_time(std::int64_t t) const {
    if (t != kNever && (t > kMostTime || t < -kMostTime))
      fail("this is further away than any time: " + std::to_string(t));
  }

  template <class T>
  void number(std::string_view name, T& field) {
    const std::uint64_t v = expect(name, Type::kNumber).number;
    if constexpr (std::is_same_v<T, std::int64_t>) check_time(static_cast<std::int64_t>(v));
    if constexpr (std::is_same_v<T, bool>) {
      if (v > 1) fail("this is not a truth value: " + std::to_string(v));
      field = v != 0;
    } else {
      field = static_cast<T>(v);
      if (!in_range(name, v)) fail("the number is out of its range: " + std::to_string(v));
      if (name == "switched_to" && v >= functions_ && v != 0xffff)
        fail("the card has no such function: " + std::to_string(v));
      if (name == "function" && function_ != kAny) {
        field = static_cast<T>(function_);
        return;
      }
      if (name == "function" && v >= functions_ && !foreign_)
        fail("the card has no such function: " + std::to_string(v));
      if (static_cast<std::uint64_t>(field) != v)
        fail("the number is out of its range: " + std::to_string(v));
      if constexpr (std::is_enum_v<T>)
        if (!state::valid(field)) fail("there is no such value: " + std::to_string(v));
    }
  }

  template <class T>
  void add(std::string_view name, T& field) {
    if constexpr (state::Referable<T>::value) {
      if (!referred_.emplace(path(), Referred{&field, typeid(T), typeid(typename state::Referable<T>::Base)})
               .second)
        fail("it is there twice");
    }
    if constexpr (std::is_floating_point_v<T>) {
      field = static_cast<T>(expect(name, Type::kReal).real);
    } else if constexpr (state::kNumber<T>) {
      number(name, field);
    } else if constexpr (state::Lists<T, StateLoad>::value) {
      expect(name, Type::kGroup);
      within([&] { field.list_state(*this); });
    } else if constexpr (state::IsBitset<T>::value) {
      const std::string_view bits = sized(name, (field.size() + 7) / 8);
      for (std::size_t i = 0; i < field.size(); ++i) field[i] = (bits[i / 8] >> i % 8 & 1) != 0;
      if (field.size() % 8 != 0 && (static_cast<unsigned char>(bits.back()) >> field.size() % 8) != 0)
        fail("more bits are set than there are");
    } else if constexpr (state::IsRandom<T>::value) {
      std::istringstream text{std::string(expect(name, Type::kBytes).content)};
      text.imbue(std::locale::classic());
      text >> field;
      if (!text) fail("this is no state of a random number generator");
    } else if constexpr (state::IsPair<T>::value) {
      expect(name, Type::kList);
      within([&] {
        load("", field.first);
        load("", field.second);
      });
    } else if constexpr (state::kBytes<T>) {
      std::memcpy(&field, sized(name, sizeof field).data(), sizeof field);
    } else if constexpr (state::IsOptional<T>::value || state::IsOwner<T>::value) {
      owner(name, field);
    } else if constexpr (std::is_same_v<T, std::string> || state::PlainBytes<T>::value) {
      plain(name, field);
    } else if constexpr (state::IsArray<T>::value) {
      expect(name, Type::kList);
      within([&] {
        std::size_t i = 0;
        for (auto& element : field) indexed(i++, [&, &e = element] { load("", e); });
      });
    } else {
      expect(name, Type::kList);
      within([&] { elements(field); });
    }
  }

  std::string_view sized(std::string_view name, std::size_t len) {
    const std::string_view content = expect(name, Type::kBytes).content;
    if (content.size() != len)
      fail("it has " + std::to_string(content.size()) + " bytes in place of " + std::to_string(len));
    return content;
  }

  template <class T>
  void plain(std::string_view name, T& field) {
    using Element = std::remove_reference_t<decltype(*field.data())>;
    if constexpr (state::IsArray<T>::value) {
      const std::string_view content = sized(name, sizeof field);
      std::memcpy(field.data(), content.data(), content.size());
    } else {
      const std::string_view content = expect(name, Type::kBytes).content;
      if (content.size() % sizeof(Element) != 0) fail("it does not consist of whole elements");
      field.resize(content.size() / sizeof(Element));
      if (!content.empty()) std::memcpy(field.data(), content.data(), content.size());
    }
    if constexpr (std::is_same_v<Element, std::int64_t>)
      for (const Element e : field) check_time(e);
    if constexpr (std::is_enum_v<Element>)
      for (const Element e : field)
        if (!state::valid(e))
          fail("there is no such value: " + std::to_string(static_cast<std::uint64_t>(e)));
  }

  // What cannot be made is there already, or must not be there.
  template <class T>
  void owner(std::string_view name, T& field) {
    using Owned = std::remove_reference_t<decltype(*field)>;
    const bool there = from_.peek().type != Type::kNone;
    if constexpr (std::is_default_constructible_v<Owned>) {
      if (!there) {
        expect(name, Type::kNone);
        field.reset();
        return;
      }
      if constexpr (state::IsOptional<T>::value)
        field.emplace();
      else
        make(field);
    } else {
      if (there != static_cast<bool>(field)) fail("the card has none, or has one too many");
      if (!there) {
        expect(name, Type::kNone);
        return;
      }
    }
    add(name, *field);
  }
  template <class T>
  static void make(std::unique_ptr<T>& field) {
    field = std::make_unique<T>();
  }
  template <class T>
  static void make(std::shared_ptr<T>& field) {
    field = std::make_shared<T>();
  }

  template <class T>
  void elements(T& field) {
    std::size_t i = 0;
    if constexpr (state::IsMap<T>::value) {
      field.clear();
      const typename T::key_type* last = nullptr;
      while (!from_.at_end()) {
        expect("", Type::kList);
        within([&] {
          typename T::key_type key{};
          load("", key);
          if (last != nullptr && !(*last < key)) fail("the keys are not in their order");
          auto& [at, value] = *field.try_emplace(field.end(), std::move(key));
          last = &at;
          named(key_text(at), [&, &v = value] { add("", v); });
        });
      }
    } else if constexpr (state::IsSet<T>::value) {
      field.clear();
      const typename T::key_type* last = nullptr;
      while (!from_.at_end()) {
        typename T::key_type key{};
        load("", key);
        if (last != nullptr && !(*last < key)) fail("the elements are not in their order");
        last = &*field.insert(field.end(), std::move(key));
      }
    } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
      field.clear();
      while (!from_.at_end()) {
        bool bit = false;
        load("", bit);
        field.push_back(bit);
      }
    } else if constexpr (!std::is_default_constructible_v<typename T::value_type> ||
                         owns_fixed<typename T::value_type>()) {
      for (auto& element : field) indexed(i++, [&, &e = element] { load("", e); });
    } else {
      field.clear();
      // References among them must not move.
      if constexpr (std::is_same_v<T, std::vector<typename T::value_type>>) field.reserve(from_.count());
      while (!from_.at_end()) {
        auto& element = field.emplace_back();
        indexed(i++, [&] { load("", element); });
      }
    }
  }
  // Elements that point to what cannot be made anew.
  template <class T>
  static constexpr bool owns_fixed() {
    if constexpr (state::IsOwner<T>::value)
      return !std::is_default_constructible_v<typename T::element_type>;
    else
      return false;
  }
  template <class Key>
  static std::string key_text(const Key& key) {
    if constexpr (state::kNumber<Key>)
      return std::to_string(static_cast<std::uint64_t>(key));
    else
      return "of";
  }

  static constexpr Time kMostTime = kNever / 8 * 7;  // 93 days of the 106 that simulated time has

  TaggedReader& from_;
  std::size_t functions_ = 0;
  static constexpr std::uint64_t kAny = ~std::uint64_t{0};
  std::uint64_t function_ = kAny;
  bool foreign_ = false;
  struct Step {
    std::string_view name;  // empty: an element, by its index
    std::size_t index;
  };
  std::vector<Step> steps_;
  std::unordered_map<std::string, Referred> referred_;
  Packets packets_;
  std::vector<std::function<void()>> later_;
};

}  // namespace hcasim::saved
#endif
