// SPDX-License-Identifier: BSD-3-Clause
// Ends of a link whose time is the test's own, and what they hear.
#ifndef HCASIM_TESTS_WIRE_LINK_ENDS_H
#define HCASIM_TESTS_WIRE_LINK_ENDS_H

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../files.h"
#include "pass.h"
#include "wire/link.h"

namespace hcasim::wire {

using test::Folder;
using Bytes = std::vector<std::uint8_t>;

inline Address address(const std::string& text) {
  Address a;
  std::string err;
  EXPECT_TRUE(parse_address(text, a, err)) << err;
  return a;
}

inline Hello hello(const char* name) {
  Hello h;
  h.name = name;
  h.node_guid = static_cast<unsigned char>(name[0]);
  h.lid = 3;
  h.mtu = 4096;
  h.rate = 100'000;
  return h;
}

inline Hello coupled_hello(const char* name) {
  Hello h = hello(name);
  h.coupled = true;
  h.latency = 150'000;
  return h;
}

struct End final : Link::Owner {
  End(const std::string& where, const char* name) : End(where, hello(name)) {}
  End(const std::string& where, const Hello& h) : link(address(where), h, *this) {}
  std::string wire_mark(const Mark& m) override {
    marks.push_back(m);
    return refuse_mark;
  }
  std::string wire_up(const Hello& h) override {
    peer = h;
    ++ups;
    return refuse;
  }
  void wire_down() override { ++downs; }
  void wire_wish(const Wish& w) override { wish = w; }
  void wire_frame(const Message& m) override {
    ++count;
    bytes += m.len;
    if (keep) frames.push_back({m.flags, m.time, Bytes(m.body, m.body + m.len)});
  }
  void wire_watch(int fd, bool read, bool write) override {
    if (read || write)
      watched[fd] = {read, write};
    else
      watched.erase(fd);
  }
  void wire_log(int, const std::string& line) override { log += line + "\n"; }

  bool send(const Bytes& f, std::uint8_t flags = 0, std::int64_t time = 0) {
    std::uint8_t* room = link.frame(f.size());
    if (!room) return false;
    std::memcpy(room, f.data(), f.size());
    link.commit(f.size(), flags, time);
    return true;
  }

  struct Frame {
    std::uint8_t flags;
    std::int64_t time;
    Bytes body;
  };
  Hello peer;
  std::string refuse, refuse_mark, log;
  std::vector<Mark> marks;
  int ups = 0, downs = 0;
  Wish wish;
  bool keep = true;
  std::size_t count = 0, bytes = 0;
  std::vector<Frame> frames;
  std::map<int, std::pair<bool, bool>> watched;
  Link link;
};

// Over a socket, and through shared memory.
class LinkTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::string where(const char* file = "s") const { return GetParam() + (folder_ / file); }
  template <class... Ends>
  void pass(double seconds, Ends&... ends) {
    pass_from(now_, seconds, ends...);
  }
  // As an end does that waits for the other one.
  Link::Pulled waits(End& end) {
    Link::Pulled got = end.link.pull(now_);
    for (int i = 0; i < 100 && got == Link::Pulled::kNothing; ++i) {
      end.link.wait(10);
      got = end.link.pull(now_);
    }
    return got;
  }
  Folder folder_;
  std::int64_t now_ = kSecond;
};

}  // namespace hcasim::wire
#endif
