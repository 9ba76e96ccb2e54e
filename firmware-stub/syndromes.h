// SPDX-License-Identifier: BSD-3-Clause
// Why a command failed: every reason has a number of its own (output mailbox, dword 1), a command status that
// it implies, and a text for traces and logs. The numbers are this firmware's own; drivers only print them.
// An object in use is refused with BAD_RES_STATE, as cards do.
#ifndef HCASIM_FIRMWARE_STUB_SYNDROMES_H
#define HCASIM_FIRMWARE_STUB_SYNDROMES_H

#include <cstdint>

#include "model/prm/cmd_queue.h"

// X(name, number, status, text)
#define HCASIM_SYNDROMES(X)                                                                \
  X(Ok, 0, kOk, "")                                                                        \
  /* the command as such */                                                                \
  X(UnknownOpcode, 0x5a0101, kBadOp, "no such opcode")                                     \
  X(NotOffered, 0x5a0102, kBadOp, "the capability for this opcode is not offered")         \
  X(InputShort, 0x5a0103, kBadInpLen, "input shorter than the command's structure")        \
  X(OutputShort, 0x5a0104, kBadOutpLen, "output shorter than the command's structure")     \
  X(NotEnabled, 0x5a0105, kBadSysState, "before ENABLE_HCA")                               \
  X(NotInitialized, 0x5a0106, kBadSysState, "before INIT_HCA")                             \
  X(Initialized, 0x5a0107, kBadSysState, "only before INIT_HCA")                           \
  X(OpMod, 0x5a0108, kBadParam, "op_mod not supported by this opcode")                     \
  X(Uid, 0x5a0109, kBadParam, "uid is not a user context")                                 \
  X(FirmwareFatal, 0x5a010a, kIntErr, "firmware is in its fatal state")                    \
  X(NoMemory, 0x5a010b, kNoRes, "the model is out of memory")                              \
  X(NoPages, 0x5a010c, kNoRes, "out of host pages for contexts")                           \
  X(Function, 0x5a010d, kBadParam, "no such function or vport")                            \
  X(PortNumber, 0x5a010e, kBadParam, "no such port")                                       \
  X(Umem, 0x5a010f, kBadParam, "umem objects are not offered")                             \
  /* life cycle, capabilities, pages */                                                    \
  X(Issi, 0x5a0201, kBadParam, "ISSI not supported")                                       \
  X(CapGroup, 0x5a0202, kBadParam, "no such capability group")                             \
  X(CapValue, 0x5a0203, kBadParam, "capability set beyond its maximum or not settable")    \
  X(TeardownProfile, 0x5a0204, kBadParam, "no such teardown profile")                      \
  X(PageCount, 0x5a0205, kBadParam, "number of pages beyond the list")                     \
  X(PageAddress, 0x5a0206, kBadParam, "page address zero or not 4 KiB aligned")            \
  X(PageTwice, 0x5a0207, kBadParam, "page given twice")                                    \
  X(InitPages, 0x5a020d, kBadSysState, "boot and init pages have not been given")          \
  X(Register, 0x5a0208, kBadParam, "no such register")                                     \
  X(RegisterRead, 0x5a0209, kBadParam, "register cannot be accessed that way")             \
  X(RegisterLength, 0x5a020a, kBadInpLen, "register data too short")                       \
  X(RegisterValue, 0x5a020b, kBadParam, "value not supported by the register")             \
  X(HostEndianness, 0x5a020c, kBadParam, "host endianness not supported")                  \
  /* PD, UAR, XRCD, transport domain, counters */                                          \
  X(PdLimit, 0x5a0301, kLim, "no more PDs")                                                \
  X(PdNumber, 0x5a0302, kBadRes, "no such PD")                                             \
  X(PdBusy, 0x5a0303, kBadResState, "PD in use")                                           \
  X(UarLimit, 0x5a0304, kLim, "no more UAR pages")                                         \
  X(UarNumber, 0x5a0305, kBadRes, "UAR page not allocated")                                \
  X(XrcdLimit, 0x5a0306, kLim, "no more XRC domains")                                      \
  X(XrcdNumber, 0x5a0307, kBadRes, "no such XRC domain")                                   \
  X(XrcdBusy, 0x5a0308, kBadResState, "XRC domain in use")                                 \
  X(TdLimit, 0x5a0309, kLim, "no more transport domains")                                  \
  X(TdNumber, 0x5a030a, kBadRes, "no such transport domain")                               \
  X(QCounterLimit, 0x5a030b, kLim, "no more Q counters")                                   \
  X(QCounterNumber, 0x5a030c, kBadRes, "no such Q counter")                                \
  X(QCounterBusy, 0x5a030d, kBadResState, "Q counter in use")                              \
  /* event queues */                                                                       \
  X(EqLimit, 0x5a0401, kLim, "no more EQs")                                                \
  X(EqNumber, 0x5a0402, kBadRes, "no such EQ")                                             \
  X(EqBusy, 0x5a0403, kBadResState, "EQ in use by a CQ")                                   \
  X(EqSize, 0x5a0404, kLim, "EQ larger than log_max_eq_sz")                                \
  X(EqVector, 0x5a0405, kIx, "no such MSI-X vector")                                       \
  X(EqPages, 0x5a0406, kBadParam, "EQ's page list too short")                              \
  /* completion queues */                                                                  \
  X(CqLimit, 0x5a0501, kLim, "no more CQs")                                                \
  X(CqNumber, 0x5a0502, kBadRes, "no such CQ")                                             \
  X(CqBusy, 0x5a0503, kBadResState, "CQ in use by a QP or SRQ")                            \
  X(CqSize, 0x5a0504, kLim, "CQ larger than log_max_cq_sz")                                \
  X(CqeSize, 0x5a0505, kBadParam, "CQE size not supported")                                \
  X(CqPages, 0x5a0506, kBadParam, "CQ's page list too short")                              \
  X(CqEq, 0x5a0507, kBadRes, "CQ's EQ does not exist")                                     \
  X(CqDbr, 0x5a0508, kBadParam, "CQ's doorbell record not 8-byte aligned")                 \
  X(CqFeature, 0x5a0509, kBadParam, "CQ feature not offered")                              \
  X(CqResize, 0x5a050a, kBadResState, "CQ cannot be resized to that")                      \
  X(CqModifyMask, 0x5a050b, kBadParam, "MODIFY_CQ field not supported")                    \
  /* memory keys */                                                                        \
  X(MkeyLimit, 0x5a0601, kLim, "no more mkeys")                                            \
  X(MkeyNumber, 0x5a0602, kBadRes, "no such mkey")                                         \
  X(MkeyMode, 0x5a0603, kBadParam, "access mode not supported")                            \
  X(MkeyPd, 0x5a0604, kBadRes, "mkey's PD does not exist")                                 \
  X(MkeyList, 0x5a0605, kBadParam, "translation list shorter than its size says")          \
  X(MkeyListSize, 0x5a0606, kLim, "translation list too long")                             \
  X(MkeyPageSize, 0x5a0607, kBadParam, "mkey page size not supported")                     \
  X(MkeyRange, 0x5a0608, kBadParam, "translation list does not cover the length")          \
  X(MkeyFeature, 0x5a0609, kBadParam, "mkey feature not offered")                          \
  X(MkeyWrap, 0x5a060a, kBadParam, "start address plus length wraps")                      \
  /* shared receive queues */                                                              \
  X(SrqLimit, 0x5a0701, kLim, "no more SRQs")                                              \
  X(SrqNumber, 0x5a0702, kBadRes, "no such SRQ")                                           \
  X(SrqKind, 0x5a0703, kBadRes, "SRQ is of another kind")                                  \
  X(SrqBusy, 0x5a0704, kBadResState, "SRQ in use by a QP")                                 \
  X(SrqSize, 0x5a0705, kLim, "SRQ larger than log_max_srq_sz")                             \
  X(SrqStride, 0x5a0706, kBadParam, "SRQ stride not supported")                            \
  X(SrqPages, 0x5a0707, kBadParam, "SRQ's page list too short")                            \
  X(SrqPd, 0x5a0708, kBadRes, "SRQ's PD does not exist")                                   \
  X(SrqXrcd, 0x5a0709, kBadRes, "SRQ's XRC domain does not exist")                         \
  X(SrqCq, 0x5a070a, kBadRes, "SRQ's CQ does not exist")                                   \
  X(SrqDbr, 0x5a070b, kBadParam, "SRQ's doorbell record not aligned")                      \
  X(SrqArm, 0x5a070c, kBadParam, "SRQ limit beyond its size")                              \
  X(SrqFeature, 0x5a070d, kBadParam, "SRQ feature not offered")                            \
  X(SrqState, 0x5a070e, kBadResState, "SRQ is not in the state named")                     \
  /* queue pairs */                                                                        \
  X(QpLimit, 0x5a0801, kLim, "no more QPs")                                                \
  X(QpNumber, 0x5a0802, kBadRes, "no such QP")                                             \
  X(QpType, 0x5a0803, kBadParam, "transport service type not supported")                   \
  X(QpState, 0x5a0804, kBadQpState, "transition not allowed from the QP's state")          \
  X(QpPd, 0x5a0805, kBadRes, "QP's PD does not exist")                                     \
  X(QpSendCq, 0x5a0806, kBadRes, "QP's send CQ does not exist")                            \
  X(QpRecvCq, 0x5a0807, kBadRes, "QP's receive CQ does not exist")                         \
  X(QpSrq, 0x5a0808, kBadRes, "QP's SRQ does not exist")                                   \
  X(QpUar, 0x5a0809, kBadRes, "QP's UAR page is not allocated")                            \
  X(QpSize, 0x5a080a, kLim, "QP's queue larger than log_max_qp_sz")                        \
  X(QpPages, 0x5a080b, kBadParam, "QP's page list too short")                              \
  X(QpDbr, 0x5a080c, kBadParam, "QP's doorbell record not 8-byte aligned")                 \
  X(QpRqType, 0x5a080d, kBadParam, "rq_type not supported")                                \
  X(QpFeature, 0x5a080e, kBadParam, "QP feature not offered")                              \
  X(QpBusy, 0x5a080f, kBadResState, "QP attached to a multicast group")                    \
  X(QpSpecial, 0x5a0810, kBadResState, "the port's special QP exists already")             \
  X(QpMtu, 0x5a0811, kBadParam, "path MTU not supported")                                  \
  X(QpPath, 0x5a0812, kIx, "P_Key, GID or port index of the path out of range")            \
  X(QpDepth, 0x5a0813, kBadParam, "outstanding reads and atomics beyond the capability")   \
  X(QpOptMask, 0x5a0814, kBadParam, "optional parameter not supported by this transition") \
  X(QpAtomicMode, 0x5a0815, kBadParam, "atomic mode not supported")                        \
  X(QpCounter, 0x5a0816, kBadRes, "QP's Q counter does not exist")                         \
  X(QpMsgSize, 0x5a0817, kBadParam, "log_msg_max beyond the capability")                   \
  X(QpModelRefused, 0x5a0818, kIntErr, "the QP table refused the number")                  \
  /* multicast, vport, MAD */                                                              \
  X(McgGid, 0x5a0901, kBadParam, "not a multicast GID")                                    \
  X(McgFull, 0x5a0902, kLim, "multicast group or table full")                              \
  X(McgNotAttached, 0x5a0903, kBadRes, "QP is not attached to the group")                  \
  X(McgQpType, 0x5a0904, kBadParam, "only UD QPs attach to multicast groups")              \
  X(GidIndex, 0x5a0905, kIx, "GID index out of range")                                     \
  X(PkeyIndex, 0x5a0906, kIx, "P_Key index out of range")                                  \
  X(VportField, 0x5a0907, kBadParam, "vport field cannot be modified")                     \
  X(MadFormat, 0x5a0908, kBadPkt, "not a MAD that the firmware answers")                   \
  /* inside the firmware: the command waits until the driver gives pages */                \
  X(WaitPages, 0x5a0f01, kNoRes, "waits for host pages")

namespace hcasim::fw {

enum class Syndrome : std::uint32_t {
#define HCASIM_X(name, number, status, text) k##name = number,
  HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
};

constexpr prm::CmdStatus status_of(Syndrome s) {
  switch (s) {
#define HCASIM_X(name, number, status, text) \
  case Syndrome::k##name:                    \
    return prm::CmdStatus::status;
    HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
  }
  return prm::CmdStatus::kIntErr;
}

constexpr const char* text_of(Syndrome s) {
  switch (s) {
#define HCASIM_X(name, number, status, text) \
  case Syndrome::k##name:                    \
    return text;
    HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
  }
  return "?";
}

}  // namespace hcasim::fw
#endif
