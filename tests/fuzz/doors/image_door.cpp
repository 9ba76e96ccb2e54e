// SPDX-License-Identifier: BSD-3-Clause
// Images of virtual functions. The first byte: 0 records as LOAD_VHCA_STATE takes them, each behind its
// length (two bytes, low one first), else an image, whose checksum and record are made here.
#include <libdeflate.h>

#include "door.h"
#include "tests/device/migration_rig.h"

namespace hcasim::fuzz {
namespace {

class Scene : public Migrating {
 public:
  Scene() {
    SetUp();
    vf_ = probed(1);
    a_ = std::make_unique<Stream>(pf);
    b_ = std::make_unique<Stream>(*vf_);
    a_->connect(*b_);
    b_->connect(*a_);
    for (int i = 0; i < 3; ++i) {
      a_->pump(8);
      b_->pump(8);
      c.machine.advance(1'000);
    }
    ahead_ = ahead_of(1, 1);
    stop(1);
    image_ = image_of(1);
    chunks_ = in_chunks(1, 512);
  }
  void TestBody() override {}

  void take(const std::uint8_t* bytes, std::size_t len) {
    if (len == 0) return;
    if (!enable(2).ok()) finding("the function is not enabled");
    stop(2);
    const unsigned what = bytes[0];
    ++bytes;
    --len;
    bool loaded = false;
    if (what == 0) {
      while (len > 2) {
        const std::size_t size =
            std::min<std::size_t>(bytes[0] | static_cast<std::size_t>(bytes[1]) << 8, len - 2);
        if (size != 0)
          loaded |= answered(load_record(2, std::string(reinterpret_cast<const char*>(bytes + 2), size)));
        bytes += 2 + size;
        len -= 2 + size;
      }
    } else if (len >= 4) {
      std::string image(reinterpret_cast<const char*>(bytes), len);
      const std::uint32_t crc = libdeflate_crc32(0, image.data(), len - 4);
      for (unsigned i = 0; i < 4; ++i) image[len - 4 + i] = static_cast<char>(crc >> 8 * i);
      loaded = answered(load(2, image));
    }
    if (loaded && resume(id(2), kFirst).ok() && resume(id(2), kThen).ok()) c.machine.advance(50'000);
    if (c.card.dead()) finding("the card is in its fatal state");
    c.card.reset(2);
  }
  std::vector<std::string> good() const {
    std::vector<std::string> all{std::string{1} + image_};
    for (const Records* records : {&ahead_, &chunks_}) {
      std::string input(1, '\0');
      for (const std::string& r : *records)
        input += std::string{static_cast<char>(r.size()), static_cast<char>(r.size() >> 8)} + r;
      all.push_back(input);
    }
    return all;
  }

 private:
  static bool answered(const bare::CommandResult& r) {
    if (!r.done) finding("a command has no answer");
    return r.ok();
  }
  std::unique_ptr<bare::Device> vf_;
  std::unique_ptr<Stream> a_, b_;
  Records ahead_, chunks_;
  std::string image_;
};

Scene& scene() {
  static auto* const made = new Scene;
  return *made;
}

}  // namespace

void open_door(const std::uint8_t* bytes, std::size_t len) { scene().take(bytes, len); }

std::vector<std::string> seeds() { return scene().good(); }

}  // namespace hcasim::fuzz
