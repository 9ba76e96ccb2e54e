// SPDX-License-Identifier: BSD-3-Clause
// Host pages: memory that the driver gives to the card for its contexts (ICM). The firmware asks for a number
// at boot and at INIT_HCA, and for more by event while objects are made; at teardown it gives all back.
#ifndef HCASIM_FIRMWARE_STUB_PAGES_H
#define HCASIM_FIRMWARE_STUB_PAGES_H

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "firmware-stub/command.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {
class EqUnit;
class Function;
class Injector;
namespace traces {
class Tracer;
}
}  // namespace hcasim

namespace hcasim::fw {

class PagePool {
 public:
  static constexpr unsigned kPageShift = 12;

  struct Blocks {
    Function& function;
    EqUnit& eqs;
    Injector& injector;
    traces::Tracer& tracer;
  };
  // boot, init: the pages that are asked for then; none at INIT_HCA: none ever.
  // asked: is told of each request, in pages (negative: to take some back).
  PagePool(Blocks blocks, unsigned boot, unsigned init, std::function<void(Time, std::int32_t)> asked);

  unsigned boot_pages() const { return enabled_ ? boot_ : 0; }
  unsigned init_pages() const { return enabled_ ? init_ : 0; }
  // What is missing for work to go on: regular pages of QUERY_PAGES.
  unsigned regular_pages() const;

  Syndrome give(const Command& cmd, std::uint32_t count);  // count entries of manage_pages_in.pas
  // Moves up to `count` pages that may go into out (manage_pages_out.pas); `all`: the function is torn down.
  std::uint32_t take(std::uint8_t* out, std::uint32_t count, bool all);
  // The driver has no pages to give.
  void refused() {
    pending_ = false;
    refused_ = waiting_;
    low_refused_ = true;
  }

  // Context memory for an object. False: not enough pages now; nothing is charged.
  bool charge(std::uint64_t bytes);
  void release(std::uint64_t bytes) { icm_ -= bytes < icm_ ? bytes : icm_; }
  // The bytes that a charge() could not get: sends the event that asks for them. False: nobody would hear it,
  // or the driver has just refused.
  bool request_now(Time t);
  void request_if_low(Time t);
  // Asks for pages, or (negative) for the driver to take back so many, though there is no need.
  void ask(Time t, std::int32_t pages) { send_request(t, pages); }

  void objects_dropped();

  std::uint64_t given() const { return pages_.size(); }
  // The page of this address belongs to the device.
  bool has(std::uint64_t addr) const { return known_.count(addr >> kPageShift << kPageShift) != 0; }
  std::uint64_t used_pages() const;
  std::uint64_t requests() const { return requests_; }

  template <class Archive>
  void list_state(Archive& a) {
    list_use(a);
    HCASIM_FIELDS(a, pages_, known_);
    a.lasting("requests", requests_);
  }

 private:
  // What objects have to do with: gone with them, while the pages stay.
  template <class Archive>
  void list_use(Archive& a) {
    HCASIM_FIELDS(a, icm_, wanted_, pending_, waiting_, refused_, low_refused_);
  }
  std::uint64_t free_pages() const;
  bool send_request(Time t, std::int32_t pages);

  const Blocks blocks_;
  const bool enabled_;
  const std::function<void(Time, std::int32_t)> asked_;
  const unsigned boot_, init_;
  std::vector<std::uint64_t> pages_;         // bus addresses, last given on top
  std::unordered_set<std::uint64_t> known_;  // the same
  std::uint64_t icm_ = 0;                    // bytes in use by objects
  std::uint64_t wanted_ = 0;                 // bytes that the last failed charge asked for
  bool pending_ = false;                     // a request event is unanswered
  bool waiting_ = false;                     // a command waits for pages
  bool refused_ = false;                     // and the driver has none
  bool low_refused_ = false;                 // do not ask ahead again
  std::uint64_t requests_ = 0;
};

}  // namespace hcasim::fw
#endif
