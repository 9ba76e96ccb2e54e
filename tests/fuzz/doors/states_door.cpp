// SPDX-License-Identifier: BSD-3-Clause
// Saved states. An input is what is changed in a right one, as a state is far longer than what a fuzzer
// handles well: a byte that chooses the state, then changes, each three bytes with the place, low one first,
// one that says how many bytes there go, one with how many come, and these. The checksum is made for it. A
// state that is refused changes nothing; with one that is taken the card goes on as it can.
#include <libdeflate.h>

#include <algorithm>

#include "card_rig.h"
#include "door.h"
#include "driver/bare/saved.h"
#include "tests/device/fixture.h"

namespace hcasim::fuzz {
namespace {

using namespace hcasim::bare;

// On a switch, with room for one packet in each lane, few credits of PCIe and a small cache of translations.
constexpr const char* kCredited =
    "link=ib,switch=s,port.lane_buffer=4096,pcie.posted_headers=8,pcie.posted_data=64,pcie.nonposted_headers="
    "2,"
    "memory.iotlb=16,memory.atc=8,memory.llc_kib=64,memory.llc_io_kib=8";

// An end of a connection from card to card.
struct End {
  explicit End(Device& device)
      : pd(device),
        cq(device),
        qp(device, pd, cq, cq),
        memory(device.memory().allocate(kBytes)),
        mr(device, Mr::of(pd, memory)) {}
  void write_to(const End& far) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{mr.start(), mr.key(), kBytes}};
    w.raddr = far.mr.start();
    w.rkey = far.mr.key();
    qp.post(w);
  }
  static constexpr std::uint32_t kBytes = 16 << 10;
  Pd pd;
  Cq cq;
  Qp qp;
  Buffer memory;
  Mr mr;
};

class Scene {
 public:
  Scene() : rig_({"link=ib", "link=eth", kCredited, kCredited, kCredited}) {
    DeviceOptions o;
    o.wait_active = false;  // the switch's subnet comes up when all are there
    for (std::size_t i = 0; i < 5; ++i) {
      devices_.push_back(std::make_unique<Device>(rig_.function(i), o));
      devices_.back()->probe();
    }
    const auto up = [&] {
      return std::all_of(devices_.begin(), devices_.end(),
                         [](const auto& d) { return d->port_state() == 4; });
    };
    if (!rig_.machine().run_until(up)) finding("a port does not come up");
    rig_.keep();
    states_.push_back(save_state());
    for (const std::size_t from : {2u, 3u}) {
      ends_.push_back(std::make_unique<End>(*devices_[from]));
      ends_.push_back(std::make_unique<End>(*devices_[4]));
      join(*ends_[ends_.size() - 2], from, 4);
      join(*ends_.back(), 4, from);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      PairOptions small;
      small.bytes = 16 << 10;
      pairs_.push_back(std::make_unique<Pair>(*devices_[i], small));
      Pair& p = *pairs_.back();
      for (const WqeOp op : {WqeOp::kRdmaWrite, WqeOp::kRdmaRead, WqeOp::kAtomicFa, WqeOp::kSend})
        p.a.post(p.wr(op, 0, op == WqeOp::kAtomicFa ? 8 : 9000));
    }
    // Two write to the third, whose room is for one packet.
    for (int n = 0; n < 8; ++n)
      for (const std::size_t i : {0u, 2u}) ends_[i]->write_to(*ends_[i + 1]);
    for (const int ns : {1500, 1500, 21000, 2000, 4000}) {
      rig_.machine().advance(ns);
      states_.push_back(save_state());
    }
    states_.push_back(with_messages());
    rig_.keep();
  }

  void take(const std::uint8_t* bytes, std::size_t len) {
    if (len == 0) return;
    std::string state = states_[bytes[0] % states_.size()];
    ++bytes;
    --len;
    while (len >= 5) {
      const std::size_t at = (bytes[0] | bytes[1] << 8u | bytes[2] << 16u) % state.size();
      const std::size_t come = std::min<std::size_t>(bytes[4], len - 5);
      state.replace(at, bytes[3], reinterpret_cast<const char*>(bytes + 5), come);
      bytes += 5 + come;
      len -= 5 + come;
    }
    if (state.size() < 4) return;
    const std::uint32_t crc = libdeflate_crc32(0, state.data(), state.size() - 4);
    for (unsigned i = 0; i < 4; ++i) state[state.size() - 4 + i] = static_cast<char>(crc >> 8 * i);
    const std::uint64_t before = rig_.function().state_digest();
    if (!load_state(state).empty()) {
      if (rig_.function().state_digest() != before) finding("a state was refused, and changed something");
      return;
    }
    rig_.machine().advance(50'000);
    static_cast<void>(save_state());
    rig_.rewind();
  }
  // A change of one byte, here and there.
  std::vector<std::string> changes() const {
    std::vector<std::string> all;
    for (std::size_t n = 0; n < states_.size(); ++n)
      for (std::size_t at = 24; at < states_[n].size(); at += states_[n].size() / 40)
        all.push_back(std::string{static_cast<char>(n), static_cast<char>(at), static_cast<char>(at >> 8),
                                  static_cast<char>(at >> 16), 1, 1, states_[n][at]});
    return all;
  }

 private:
  // Short messages that go together are on their way.
  std::string with_messages() {
    Pair& p = *pairs_[0];
    for (int n = 0; n < 8; ++n) {
      SendWr w = p.wr(WqeOp::kRdmaWrite, 0, 0);
      w.inline_data.assign(40, static_cast<std::uint8_t>(n));
      p.a.post(w, false);
    }
    p.a.ring_doorbell();
    for (int n = 0; n < 400; ++n) {
      rig_.machine().advance(50);
      std::string state = save_state();
      if (state.find("message_rkey") != std::string::npos) return state;
    }
    finding("short messages do not go together");
    return {};
  }
  // Its far end is the other one of its pair.
  void join(End& end, std::size_t from, std::size_t to) {
    QpAttr attr;
    attr.remote_qpn = ends_[ends_.size() - (from == 4 ? 2 : 1)]->qp.qpn();
    attr.dlid = devices_[to]->lid();
    end.qp.connect(attr);
  }

  CardRig rig_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<std::string> states_;
};

Scene& scene() {
  static auto* const made = new Scene;
  return *made;
}

}  // namespace

void open_door(const std::uint8_t* bytes, std::size_t len) { scene().take(bytes, len); }

std::vector<std::string> seeds() { return scene().changes(); }

}  // namespace hcasim::fuzz
