// SPDX-License-Identifier: BSD-3-Clause
/// Command queue entry and mailbox block (kernel include/linux/mlx5/device.h mlx5_cmd_layout,
/// mlx5_cmd_prot_block), and the two kinds of status.
#pragma once

#include "prm/be.h"

namespace hcasim::prm {

struct CmdEntry {
  uint8_t type;  ///< kPci
  uint8_t rsvd0[3];
  be32 inlen;  ///< bytes, the 16 inline ones included
  be64 in_ptr;
  uint8_t in[16];
  uint8_t out[16];
  be64 out_ptr;
  be32 outlen;
  uint8_t token;
  uint8_t sig;
  uint8_t rsvd1;
  uint8_t status_own;  ///< delivery status 7:1, owner 0 (1: hardware)

  static constexpr uint8_t kPci = 7, kOwnerHw = 1;
};
static_assert(sizeof(CmdEntry) == 64 && offsetof(CmdEntry, in_ptr) == 8 && offsetof(CmdEntry, in) == 0x10 &&
              offsetof(CmdEntry, out) == 0x20 && offsetof(CmdEntry, out_ptr) == 0x30 &&
              offsetof(CmdEntry, outlen) == 0x38 && offsetof(CmdEntry, token) == 0x3c &&
              offsetof(CmdEntry, status_own) == 0x3f);

struct CmdMailbox {
  uint8_t data[512];
  uint8_t rsvd0[48];
  be64 next;
  be32 block_num;
  uint8_t rsvd1;
  uint8_t token;
  uint8_t ctrl_sig;
  uint8_t sig;
};
static_assert(sizeof(CmdMailbox) == 576 && offsetof(CmdMailbox, next) == 0x230 &&
              offsetof(CmdMailbox, block_num) == 0x238 && offsetof(CmdMailbox, token) == 0x23d);

/// Status byte of an output mailbox.
enum class CmdStatus : uint8_t {
  kOk = 0x00,
  kIntErr = 0x01,
  kBadOp = 0x02,
  kBadParam = 0x03,
  kBadSysState = 0x04,
  kBadRes = 0x05,
  kResBusy = 0x06,
  kLim = 0x08,
  kBadResState = 0x09,
  kIx = 0x0a,
  kNoRes = 0x0f,
  kBadQpState = 0x10,
  kBadPkt = 0x30,
  kBadSizeOutsCqes = 0x40,
  kBadInpLen = 0x50,
  kBadOutpLen = 0x51,
};

constexpr const char* cmd_status_name(CmdStatus s) {
  switch (s) {
    case CmdStatus::kOk:
      return "OK";
    case CmdStatus::kIntErr:
      return "INT_ERR";
    case CmdStatus::kBadOp:
      return "BAD_OP";
    case CmdStatus::kBadParam:
      return "BAD_PARAM";
    case CmdStatus::kBadSysState:
      return "BAD_SYS_STATE";
    case CmdStatus::kBadRes:
      return "BAD_RES";
    case CmdStatus::kResBusy:
      return "RES_BUSY";
    case CmdStatus::kLim:
      return "LIM_ERR";
    case CmdStatus::kBadResState:
      return "BAD_RES_STATE";
    case CmdStatus::kIx:
      return "IX_ERR";
    case CmdStatus::kNoRes:
      return "NO_RES";
    case CmdStatus::kBadQpState:
      return "BAD_QP_STATE";
    case CmdStatus::kBadPkt:
      return "BAD_PKT";
    case CmdStatus::kBadSizeOutsCqes:
      return "BAD_SIZE_OUTS_CQES";
    case CmdStatus::kBadInpLen:
      return "BAD_INP_LEN";
    case CmdStatus::kBadOutpLen:
      return "BAD_OUTP_LEN";
  }
  return nullptr;
}

/// Delivery status of CmdEntry::status_own.
enum class CmdDelivery : uint8_t {
  kOk = 0x00,
  kSignature = 0x01,
  kToken = 0x02,
  kBadBlockNum = 0x03,
  kBadOutPtr = 0x04,
  kBadInPtr = 0x05,
  kFwErr = 0x06,
  kInLength = 0x07,
  kOutLength = 0x08,
  kReservedNotZero = 0x09,
  kBadType = 0x10,
};

constexpr const char* cmd_delivery_name(CmdDelivery s) {
  switch (s) {
    case CmdDelivery::kOk:
      return "OK";
    case CmdDelivery::kSignature:
      return "SIGNATURE";
    case CmdDelivery::kToken:
      return "TOKEN";
    case CmdDelivery::kBadBlockNum:
      return "BAD_BLOCK_NUM";
    case CmdDelivery::kBadOutPtr:
      return "BAD_OUT_PTR";
    case CmdDelivery::kBadInPtr:
      return "BAD_IN_PTR";
    case CmdDelivery::kFwErr:
      return "FW_ERR";
    case CmdDelivery::kInLength:
      return "IN_LENGTH";
    case CmdDelivery::kOutLength:
      return "OUT_LENGTH";
    case CmdDelivery::kReservedNotZero:
      return "RESERVED_NOT_ZERO";
    case CmdDelivery::kBadType:
      return "BAD_TYPE";
  }
  return nullptr;
}

}  // namespace hcasim::prm
