// SPDX-License-Identifier: BSD-3-Clause
// The update of the firmware's image as Linux does it (mlxfw_fsm.c, mlx5 fw.c): MCC, MCDA, and the reset that
// starts it. And the chip's temperature (hwmon.c).
#include <libdeflate.h>

#include <cstring>
#include <string>
#include <vector>

#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/firmware_image.h"

namespace hcasim::bare {
namespace {

using namespace prm::reg;
enum : std::uint32_t { kLock = 1, kRelease = 2, kUpdate = 3, kVerify = 4, kActivate = 6, kCancel = 8 };
enum : std::uint32_t { kIdle = 0, kLocked = 1, kDownload = 3, kVerifying = 4, kActivating = 6 };
enum : std::uint32_t { kDigest = 2, kNotApplicable = 3, kBadFormat = 8 };
using Mcc = prm::mcc_reg;

std::vector<std::uint8_t> image(const char* psid, std::uint32_t minor, std::size_t size = 2000) {
  using h = prm::firmware_image;
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = h::bytes; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 3);
  std::memcpy(bytes.data(), prm::kFirmwareMagic, 8);
  prm::set<h::format>(bytes.data(), prm::kFirmwareFormat);
  prm::set<h::length>(bytes.data(), static_cast<std::uint32_t>(size));
  prm::set<h::major>(bytes.data(), 16);
  prm::set<h::minor>(bytes.data(), minor);
  prm::set<h::subminor>(bytes.data(), 1010);
  std::memcpy(bytes.data() + h::psid::bit_off / 8, psid, std::strlen(psid));
  prm::store32(&bytes[size - 4], libdeflate_crc32(0, bytes.data(), size - 4));
  return bytes;
}
constexpr const char* kPsid = "HCA_0000000001";

class FirmwareUpdate : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }
  std::vector<std::uint8_t> reg(std::uint16_t id, bool write, const std::vector<std::uint8_t>& data) {
    const auto r = dev().access_register(id, write, data).must();
    return {r.out.begin() + prm::access_register_out::bytes, r.out.end()};
  }
  CommandResult mcc(std::uint32_t instruction, std::uint32_t size = 0) {
    std::vector<std::uint8_t> data(Mcc::bytes);
    prm::set<Mcc::instruction>(data.data(), instruction);
    prm::set<Mcc::update_handle>(data.data(), handle_);
    prm::set<Mcc::component_size>(data.data(), size);
    return dev().access_register(kMcc, true, data);
  }
  struct State {
    std::uint32_t state, error, handle;
  };
  State state() {
    const auto data = reg(kMcc, false, std::vector<std::uint8_t>(Mcc::bytes));
    return {prm::get<Mcc::control_state>(data.data()), prm::get<Mcc::error_code>(data.data()),
            prm::get<Mcc::update_handle>(data.data())};
  }
  CommandResult download(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) {
    using r = prm::mcda_reg;
    std::vector<std::uint8_t> data(r::bytes + size);
    prm::set<r::update_handle>(data.data(), handle_);
    prm::set<r::offset>(data.data(), offset);
    prm::set<r::size>(data.data(), size);
    for (std::uint32_t i = 0; i < size; i += 4)
      for (unsigned k = 0; k < 4; ++k) data[r::bytes + i + k] = bytes[i + 3 - k];
    return dev().access_register(kMcda, true, data);
  }
  void lock() {
    handle_ = state().handle;
    EXPECT_OK(mcc(kLock));
    EXPECT_EQ(state().state, kLocked);
  }
  // Until it has been verified.
  State load(const std::vector<std::uint8_t>& bytes, std::uint32_t skip = 0xffffffff) {
    EXPECT_OK(mcc(kUpdate, static_cast<std::uint32_t>(bytes.size())));
    EXPECT_EQ(state().state, kDownload);
    for (std::uint32_t at = 0; at < bytes.size(); at += 256)
      if (at != skip)
        EXPECT_OK(download(at, &bytes[at],
                           static_cast<std::uint32_t>(std::min<std::size_t>(256, bytes.size() - at))));
    EXPECT_OK(mcc(kVerify));
    EXPECT_TRUE(state().state == kVerifying || bytes.size() < 1000);
    machine().advance(1'000'000);
    return state();
  }
  std::uint32_t version(bool stored) {
    using r = prm::mcqi_reg;
    std::vector<std::uint8_t> data(r::bytes + prm::mcqi_version::bytes);
    prm::set<r::info_type>(data.data(), 1);
    prm::set<r::read_pending_component>(data.data(), stored ? 1 : 0);
    return prm::get<prm::mcqi_version::version>(reg(kMcqi, false, data).data() + r::bytes);
  }
  std::uint32_t update_state() {
    using r = prm::mcqs_reg;
    return prm::get<r::component_update_state>(reg(kMcqs, false, std::vector<std::uint8_t>(r::bytes)).data());
  }
  std::uint32_t handle_ = 0;
};

constexpr std::uint32_t packed(std::uint32_t minor, std::uint32_t subminor) {
  return 16u << 24 | minor << 16 | subminor;
}

TEST_F(FirmwareUpdate, AnImageIsStoredAndStartsWithTheNextReset) {
  ASSERT_EQ(version(false), packed(35, 1000));
  EXPECT_EQ(version(true), packed(35, 1000));
  const std::uint64_t before = fn().counter("fw_images_stored");
  lock();
  const State verified = load(image(kPsid, 36));
  EXPECT_EQ(verified.state, kLocked);
  EXPECT_EQ(verified.error, 0u);
  EXPECT_OK(mcc(kActivate));
  EXPECT_EQ(state().state, kActivating);
  machine().advance(2'000'000);
  EXPECT_EQ(state().state, kLocked);
  EXPECT_OK(mcc(kRelease));
  EXPECT_EQ(state().state, kIdle);
  EXPECT_EQ(fn().counter("fw_images_stored"), before + 1);
  EXPECT_EQ(update_state(), 4u);  // active, pending reset
  EXPECT_EQ(version(false), packed(35, 1000));
  EXPECT_EQ(version(true), packed(36, 1010));
  // Not with a reset of the function ...
  dev().function_reset();
  dev().probe();
  EXPECT_EQ(version(false), packed(35, 1000));
  // ... but of the card.
  ASSERT_EQ(fn().inject("fault=fw_reset"), "");
  machine().advance(1'000'000);
  dev().function_reset();
  dev().probe();
  EXPECT_EQ(version(false), packed(36, 1010));
  EXPECT_EQ(version(true), packed(36, 1010));
  EXPECT_EQ(update_state(), 0u);
  EXPECT_EQ(fn().read32(offsetof(prm::InitSeg, fw_rev)), 36u << 16 | 16u);
  // And back, for the other tests.
  lock();
  auto old = image(kPsid, 35);
  prm::set<prm::firmware_image::subminor>(old.data(), 1000);
  prm::store32(&old[old.size() - 4], libdeflate_crc32(0, old.data(), old.size() - 4));
  EXPECT_EQ(load(old).error, 0u);
  EXPECT_OK(mcc(kActivate));
  machine().advance(2'000'000);
  EXPECT_OK(mcc(kRelease));
  // A conventional reset (of the bus, of the system) is one of the card too.
  dev().card_reset();
  EXPECT_EQ(fn().read32(offsetof(prm::InitSeg, fw_rev)), 35u << 16 | 16u);
  dev().probe();
  EXPECT_EQ(version(false), packed(35, 1000));
  EXPECT_EQ(update_state(), 0u);
}

TEST_F(FirmwareUpdate, WhatIsNoImageOfThisBoardIsRejected) {
  const std::uint64_t before = fn().counter("fw_images_rejected");
  struct Case {
    std::vector<std::uint8_t> bytes;
    std::uint32_t error, skip = 0xffffffff;
  };
  auto damaged = image(kPsid, 36);
  damaged[1000] ^= 1;
  auto no_magic = image(kPsid, 36);
  no_magic[0] ^= 1;
  auto other_length = image(kPsid, 36);
  other_length.resize(1600);
  lock();
  for (const Case& c :
       {Case{damaged, kDigest}, Case{no_magic, kBadFormat}, Case{image("HCA_0000004119", 36), kNotApplicable},
        Case{other_length, kDigest}, Case{image(kPsid, 300), kBadFormat},
        Case{std::vector<std::uint8_t>(16), kBadFormat}, Case{image(kPsid, 36), kDigest, 512}}) {
    const State s = load(c.bytes, c.skip);
    EXPECT_EQ(s.state, kLocked);
    EXPECT_EQ(s.error, c.error);
    EXPECT_STATUS(mcc(kActivate), CmdStatus::kBadParam);
    EXPECT_OK(mcc(kCancel));
  }
  EXPECT_OK(mcc(kRelease));
  EXPECT_EQ(fn().counter("fw_images_rejected"), before + 7);
  EXPECT_EQ(version(true), packed(35, 1000));
}

TEST_F(FirmwareUpdate, OutOfOrderOrOutOfBounds) {
  breaks({"register-value", "register-length"});
  const auto bytes = image(kPsid, 36);
  EXPECT_STATUS(download(0, bytes.data(), 64), CmdStatus::kBadParam);  // nobody holds it
  handle_ = 0x123456;
  EXPECT_STATUS(mcc(kLock), CmdStatus::kBadParam);  // a handle that nobody was told
  lock();
  EXPECT_STATUS(mcc(kVerify), CmdStatus::kBadParam);
  EXPECT_STATUS(mcc(kActivate), CmdStatus::kBadParam);
  EXPECT_STATUS(download(0, bytes.data(), 64), CmdStatus::kBadParam);
  for (const std::uint32_t size : {0u, 6u, 0x7fffffffu, 0xfffffffcu})
    EXPECT_STATUS(mcc(kUpdate, size), CmdStatus::kBadParam);
  EXPECT_OK(mcc(kUpdate, 2000));
  EXPECT_STATUS(download(1940, bytes.data(), 64), CmdStatus::kBadParam);
  EXPECT_STATUS(download(0xfffffff0, bytes.data(), 64), CmdStatus::kBadParam);
  EXPECT_STATUS(download(0, bytes.data(), 516), CmdStatus::kBadParam);
  EXPECT_STATUS(download(2, bytes.data(), 64), CmdStatus::kBadParam);
  // Less than it says.
  std::vector<std::uint8_t> data(prm::mcda_reg::bytes + 16);
  prm::set<prm::mcda_reg::update_handle>(data.data(), handle_);
  prm::set<prm::mcda_reg::size>(data.data(), 64);
  EXPECT_STATUS(dev().access_register(kMcda, true, data), CmdStatus::kBadInpLen);
  EXPECT_OK(mcc(kCancel));
  EXPECT_OK(mcc(kRelease));
}

// ---- Temperature ----

TEST_F(FirmwareUpdate, TheChipHasATemperature) {
  using r = prm::mtmp_reg;
  breaks({"register-value"});
  const auto cap = reg(kMtcap, false, std::vector<std::uint8_t>(prm::mtcap_reg::bytes));
  EXPECT_EQ(prm::get<prm::mtcap_reg::sensor_count>(cap.data()), 1u);
  EXPECT_EQ(prm::get<prm::mtcap_reg::sensor_map>(cap.data()), 1u);
  const auto read = [this](bool forget = false) {
    std::vector<std::uint8_t> data(r::bytes);
    prm::set<r::mtr>(data.data(), forget ? 1 : 0);
    return reg(kMtmp, false, data);
  };
  const auto celsius = [](const std::vector<std::uint8_t>& d) {
    return prm::get<r::temperature>(d.data()) / 8.0;
  };
  const auto highest = [](const std::vector<std::uint8_t>& d) {
    return prm::get<r::max_temperature>(d.data()) / 8.0;
  };
  machine().advance(600'000'000'000);  // ten minutes of idling
  EXPECT_NEAR(celsius(read()), 50, 0.25);
  EXPECT_EQ(prm::get<r::temp_threshold_hi>(read().data()), 105u * 8);
  ASSERT_EQ(fn().inject("fault=temperature,sensors=1"), "");
  machine().advance(1'000'000);
  EXPECT_NEAR(celsius(read()), 105, 0.25);
  machine().advance(60'000'000'000);
  EXPECT_NEAR(celsius(read()), 50 + 55 / 2.718, 0.5);
  EXPECT_NEAR(highest(read()), 105, 0.25);
  EXPECT_NEAR(highest(read(true)), celsius(read()), 0.25);
  // The module's, as its memory has it. Others: no such sensor.
  std::vector<std::uint8_t> data(r::bytes);
  prm::set<r::sensor_index>(data.data(), 64);
  EXPECT_EQ(celsius(reg(kMtmp, false, data)), 35.5);
  prm::set<r::sensor_index>(data.data(), 5);
  EXPECT_STATUS(dev().access_register(kMtmp, false, data), CmdStatus::kBadParam);
}

using InfiniBandCable = FirmwareTest;

// Linux makes no sensor of a module that has no temperature.
TEST_F(InfiniBandCable, MeasuresNothing) {
  using r = prm::mtmp_reg;
  std::vector<std::uint8_t> data(r::bytes);
  prm::set<r::sensor_index>(data.data(), 64);
  const auto answer = dev().access_register(kMtmp, false, data).must();
  const std::uint8_t* p = answer.out.data() + prm::access_register_out::bytes;
  EXPECT_EQ(prm::get<r::sensor_index>(p), 64u);
  EXPECT_EQ(prm::get<r::temperature>(p), 0u);
}

}  // namespace
}  // namespace hcasim::bare
