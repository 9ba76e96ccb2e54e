// SPDX-License-Identifier: BSD-3-Clause
// The update of firmware components under a handle (registers MCC and MCDA): who holds it, and how far it has
// come. The card has one component, its firmware's image: written piece by piece, verified, and stored in
// the flash, from where the next start of the firmware takes it. Linux' mlxfw (`devlink dev flash`) and the
// vendor's tools go through the same states:
//
//   LOCK -> UPDATE: the size -> data -> VERIFY -> ACTIVATE -> RELEASE
//
// What an image is refused for, is an error code beside the state, and not the refusal of the register.
#ifndef HCASIM_FIRMWARE_STUB_COMPONENT_UPDATE_H
#define HCASIM_FIRMWARE_STUB_COMPONENT_UPDATE_H

#include <cstdint>
#include <vector>

#include "firmware-stub/firmware_image.h"
#include "firmware-stub/syndromes.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim::fw {

class ComponentUpdate {
 public:
  // log2 of the unit of data, and the most of them at once, bytes: what fits the tools' mailbox.
  static constexpr unsigned kLogWord = 2, kMaxWrite = 512;

  // flash: of the card, which its functions share.
  explicit ComponentUpdate(FirmwareImage& flash) : flash_(flash) {}

  // mcc: register data. Executes its instruction, and shows what comes of it, refused or not.
  Syndrome instruct(Time t, std::uint8_t* mcc, bool by_tool);
  // The state, into register data.
  void show(Time t, std::uint8_t* mcc) const;
  // MCDA: `size` bytes of the image from `offset` on, as dwords of the wire; there are `room` of them.
  Syndrome write(Time t, std::uint32_t handle, std::uint32_t offset, std::uint32_t size,
                 const std::uint8_t* data, std::size_t room);

  std::uint64_t stored() const { return stored_; }      // images
  std::uint64_t rejected() const { return rejected_; }  // that were not what they should be
  std::uint8_t error() const { return error_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, handle_, by_tool_, error_, last_instruction_, state_, busy_until_, image_, written_,
                  verified_);
    a.lasting("last_handle", last_handle_);  // no two the same
    a.lasting("stored", stored_);
    a.lasting("rejected", rejected_);
    if constexpr (Archive::kLoads)
      a.check(image_.size() <= FirmwareImage::kMaxBytes &&
                  (!verified_ || flash_.check(image_) == FirmwareImage::Verdict::kGood),
              "the image is not the one that was verified");
  }

 private:
  Syndrome execute(Time t, const std::uint8_t* mcc, bool by_tool);
  Syndrome begin(const std::uint8_t* mcc);
  void verify(Time t);
  std::uint32_t next_handle() const;
  void end();

  FirmwareImage& flash_;
  std::uint32_t handle_ = 0;  // 0: idle
  bool by_tool_ = false;
  std::uint8_t error_ = 0;  // of the last instruction
  Time last_instruction_ = 0;
  std::uint32_t last_handle_ = 0;
  std::uint8_t state_ = 0;           // mcc_reg.control_state, as soon as ...
  Time busy_until_ = 0;              // ... the flash has done
  std::vector<std::uint8_t> image_;  // as large as was said
  std::uint64_t written_ = 0;        // bytes of it that have come
  bool verified_ = false;
  std::uint64_t stored_ = 0, rejected_ = 0;
};

}  // namespace hcasim::fw
#endif
