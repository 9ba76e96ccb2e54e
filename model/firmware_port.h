// SPDX-License-Identifier: BSD-3-Clause
// What the hardware asks of the firmware: the registers of the initialization segment, the command doorbell,
// and events that the firmware must know. The model owns this interface; firmware-stub implements it.
#ifndef HCASIM_MODEL_FIRMWARE_PORT_H
#define HCASIM_MODEL_FIRMWARE_PORT_H

#include <cstdint>
#include <optional>
#include <vector>

#include "model/time.h"

namespace hcasim {

struct Packet;
struct FaultSpec;

class FirmwarePort {
 public:
  // Initialization segment, BAR0 offsets 0..0x2fff: aligned 32-bit registers, value in host order of the
  // big-endian register (0x00000005 reads as the bytes 00 00 00 05).
  virtual std::uint32_t init_seg_read(std::uint32_t offset) = 0;
  virtual void init_seg_write(std::uint32_t offset, std::uint32_t value) = 0;
  // The command mailbox of tools (ICMD), which the function's gateway leads to: aligned 32-bit words. None,
  // false: nothing is at this address.
  virtual std::optional<std::uint32_t> icmd_read(std::uint32_t address) {
    (void)address;
    return {};
  }
  virtual bool icmd_write(std::uint32_t address, std::uint32_t value) {
    (void)address, (void)value;
    return false;
  }
  // What it has counted, for whoever looks at a card that has failed.
  virtual std::vector<std::uint64_t> core() { return {}; }
  // The function goes back to power-on state (FLR, bus reset). The model has dropped its own state already.
  virtual void function_reset() = 0;
  // A QP, or its send queue, has failed by itself.
  virtual void qp_failed(std::uint32_t qpn) = 0;
  // A datagram for QP 0 or 1 of the port. True: one of the card's own agents has taken it.
  virtual bool take_mad(Time t, const Packet& packet) {
    (void)t, (void)packet;
    return false;
  }
  // A timed fault of the firmware's begins, or is over.
  virtual void fault(Time t, const FaultSpec& fault, bool begin) { (void)t, (void)fault, (void)begin; }
  // An invariant of the model is broken: report through health.synd, refuse commands.
  virtual void fatal(const char* what) noexcept = 0;

 protected:
  ~FirmwarePort() = default;
};

// The place of a firmware that is plugged in after the blocks which call it have been built. While it is
// empty calls do nothing, and registers read as all ones.
class FirmwareSlot final : public FirmwarePort {
 public:
  void attach(FirmwarePort& firmware) { firmware_ = &firmware; }
  bool empty() const { return firmware_ == nullptr; }

  std::uint32_t init_seg_read(std::uint32_t offset) override {
    return firmware_ ? firmware_->init_seg_read(offset) : 0xffffffff;
  }
  void init_seg_write(std::uint32_t offset, std::uint32_t value) override {
    if (firmware_) firmware_->init_seg_write(offset, value);
  }
  std::optional<std::uint32_t> icmd_read(std::uint32_t address) override {
    return firmware_ ? firmware_->icmd_read(address) : std::nullopt;
  }
  bool icmd_write(std::uint32_t address, std::uint32_t value) override {
    return firmware_ && firmware_->icmd_write(address, value);
  }
  std::vector<std::uint64_t> core() override {
    return firmware_ ? firmware_->core() : std::vector<std::uint64_t>();
  }
  void function_reset() override {
    if (firmware_) firmware_->function_reset();
  }
  void qp_failed(std::uint32_t qpn) override {
    if (firmware_) firmware_->qp_failed(qpn);
  }
  bool take_mad(Time t, const Packet& packet) override { return firmware_ && firmware_->take_mad(t, packet); }
  void fault(Time t, const FaultSpec& fault, bool begin) override {
    if (firmware_) firmware_->fault(t, fault, begin);
  }
  void fatal(const char* what) noexcept override {
    if (firmware_) firmware_->fatal(what);
  }

 private:
  FirmwarePort* firmware_ = nullptr;
};

}  // namespace hcasim
#endif
