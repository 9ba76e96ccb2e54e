// SPDX-License-Identifier: BSD-3-Clause
// Why a command failed: every reason has a number of its own (output mailbox, dword 1), a command status that
// it implies, and a text for traces and logs. The numbers are this firmware's own; drivers only print them.
// An object in use is refused with BAD_RES_STATE, as cards do.
#ifndef HCASIM_FIRMWARE_STUB_SYNDROMES_H
#define HCASIM_FIRMWARE_STUB_SYNDROMES_H

#include <cstdint>

#include "prm/cmd_queue.h"
#include "traces/rules.h"

// X(name, number, status, rule, text)
// rule: the validation rule (traces/rule_list.h) that the driver has broken; kCount: none, a limit is reached
// or the device itself cannot.
#define HCASIM_SYNDROMES(X)                                                                               \
  X(Ok, 0, kOk, kCount, "")                                                                               \
  /* the command as such */                                                                               \
  X(UnknownOpcode, 0x5a0101, kBadOp, kCmdOpcode, "no such opcode")                                        \
  X(NotOffered, 0x5a0102, kBadOp, kCapNotOffered, "the capability for this opcode is not offered")        \
  X(InputShort, 0x5a0103, kBadInpLen, kCmdInputShort, "input shorter than the command's structure")       \
  X(OutputShort, 0x5a0104, kBadOutpLen, kCmdOutputShort, "output shorter than the command's structure")   \
  X(NotEnabled, 0x5a0105, kBadSysState, kBeforeEnable, "before ENABLE_HCA")                               \
  X(NotInitialized, 0x5a0106, kBadSysState, kBeforeInit, "before INIT_HCA")                               \
  X(Initialized, 0x5a0107, kBadSysState, kAfterInit, "only before INIT_HCA")                              \
  X(OpMod, 0x5a0108, kBadParam, kCmdOpMod, "op_mod not supported by this opcode")                         \
  X(Uid, 0x5a0109, kBadParam, kUid, "uid is not a user context")                                          \
  X(FirmwareFatal, 0x5a010a, kIntErr, kCount, "firmware is in its fatal state")                           \
  X(NoMemory, 0x5a010b, kNoRes, kCount, "the model is out of memory")                                     \
  X(NoPages, 0x5a010c, kNoRes, kCount, "out of host pages for contexts")                                  \
  X(Function, 0x5a010d, kBadParam, kCmdFunction, "no such function or vport")                             \
  X(PortNumber, 0x5a010e, kBadParam, kCmdFunction, "no such port")                                        \
  X(Umem, 0x5a010f, kBadParam, kUmem, "a UMEM where that queue takes none")                               \
  X(NotForUsers, 0x5a0110, kBadOp, kUserCommand, "not a command for user contexts")                       \
  X(NotOwner, 0x5a0111, kBadRes, kUserOwner, "an object of another user context")                         \
  X(UctxLimit, 0x5a0112, kLim, kCount, "no more user contexts")                                           \
  X(UctxCap, 0x5a0113, kBadParam, kUserCommand, "the user context lacks the right")                       \
  X(UctxBusy, 0x5a0114, kBadResState, kDestroyBusy, "user context has objects")                           \
  X(UmemLimit, 0x5a0115, kLim, kCount, "no more UMEMs")                                                   \
  X(UmemNumber, 0x5a0116, kBadRes, kNoObject, "no such UMEM")                                             \
  X(UmemBusy, 0x5a0117, kBadResState, kDestroyBusy, "UMEM in use by a queue")                             \
  X(UmemPages, 0x5a0118, kBadParam, kUmem, "UMEM's page list or page size wrong")                         \
  X(UmemOffset, 0x5a0119, kBadParam, kUmem, "offset in the UMEM not aligned")                             \
  X(UmemRange, 0x5a011a, kBadParam, kUmem, "not wholly inside of the UMEM")                               \
  X(UmemWrite, 0x5a011b, kBadParam, kUmem, "UMEM is read-only to the device")                             \
  X(RingMemory, 0x5a0137, kNoRes, kCount, "no memory for the page list of a queue's ring")                \
  X(UmemFeature, 0x5a011c, kBadParam, kCapNotOffered, "UMEM feature not offered")                         \
  X(GeneralType, 0x5a011d, kBadParam, kGeneralObject, "no such type of general object")                   \
  X(GeneralFeature, 0x5a011e, kBadParam, kCapNotOffered, "ranges, aliases not offered")                   \
  X(GeneralNumber, 0x5a011f, kBadRes, kNoObject, "no such general object")                                \
  X(GeneralBusy, 0x5a0120, kBadResState, kDestroyBusy, "general object in use")                           \
  X(DekPurpose, 0x5a0160, kBadParam, kCapNotOffered,                                                      \
    "a key for something other than TLS, IPsec, MACsec, PSP")                                             \
  X(DekSize, 0x5a0161, kBadParam, kCapNotOffered, "a key's size is neither 128 nor 256 bits")             \
  X(DekLimit, 0x5a0162, kLim, kCount, "no more encryption keys")                                          \
  X(DekNumber, 0x5a0163, kBadRes, kNoObject, "no such encryption key")                                    \
  X(DekBusy, 0x5a0164, kBadResState, kDestroyBusy, "encryption key in use")                               \
  X(IpsecLimit, 0x5a0170, kLim, kCount, "no more objects of IPsec")                                       \
  X(IpsecNumber, 0x5a0171, kBadRes, kNoObject, "no such object of IPsec")                                 \
  X(IpsecBusy, 0x5a0172, kBadResState, kDestroyBusy, "object of IPsec in use")                            \
  X(IpsecFeature, 0x5a0173, kBadParam, kCapNotOffered,                                                    \
    "an object of IPsec with a tag of another length, or whose state is not valid")                       \
  X(MacsecLimit, 0x5a0174, kLim, kCount, "no more objects of MACsec")                                     \
  X(MacsecNumber, 0x5a0175, kBadRes, kNoObject, "no such object of MACsec")                               \
  X(MacsecBusy, 0x5a0176, kBadResState, kDestroyBusy, "object of MACsec in use")                          \
  X(MacsecFeature, 0x5a0177, kBadParam, kCapNotOffered,                                                   \
    "an object of MACsec that encrypts from further on, or whose state is not valid")                     \
  X(PspCount, 0x5a0178, kBadParam, kCapLimit, "no SPI, or more than log_max_num_of_psp_spi")              \
  X(PspSpent, 0x5a0179, kLim, kCount, "no SPIs left until the device key is rotated")                     \
  X(SchedHierarchy, 0x5a0121, kBadParam, kCapNotOffered, "scheduling hierarchy not offered")              \
  X(SchedType, 0x5a0122, kBadParam, kSched, "scheduling element's type not offered")                      \
  X(SchedParent, 0x5a0123, kBadParam, kSched, "no such parent, or tree too deep")                         \
  X(SchedShare, 0x5a0124, kBadParam, kCapLimit, "share beyond max_tsar_bw_share")                         \
  X(SchedNumber, 0x5a0125, kBadRes, kNoObject, "no such scheduling element")                              \
  X(SchedBusy, 0x5a0126, kBadResState, kDestroyBusy, "scheduling element in use")                         \
  X(SchedLimit, 0x5a0127, kLim, kCount, "no more scheduling elements")                                    \
  X(PaceIndex, 0x5a0128, kIx, kTableIndex, "no such rate limiter")                                        \
  X(PaceRate, 0x5a0129, kBadParam, kCapLimit, "rate beyond packet_pacing_max_rate")                       \
  X(LagMaster, 0x5a0140, kBadParam, kCmdFunction, "not the first port of a card that has two")            \
  X(LagActive, 0x5a0141, kBadResState, kCount, "the ports are aggregated already, or one vport")          \
  X(LagNone, 0x5a0142, kBadResState, kCount, "the ports are not aggregated, or not one vport")            \
  X(LagMode, 0x5a0143, kBadParam, kCapNotOffered, "way to select a port or an FDB not offered")           \
  X(LagPort, 0x5a0144, kBadParam, kCmdFunction, "the card has no such port")                              \
  X(LagTables, 0x5a0145, kBadResState, kCount, "no tables that select a port, or they are in use")        \
  /* life cycle, capabilities, pages */                                                                   \
  X(Issi, 0x5a0201, kBadParam, kIssi, "ISSI not supported")                                               \
  X(CapGroup, 0x5a0202, kBadParam, kCapSet, "no such capability group")                                   \
  X(CapGroupAsked, 0x5a0250, kBadParam, kCount, "no such capability group, a user context asks")          \
  X(CapValue, 0x5a0203, kBadParam, kCapSet, "capability set beyond its maximum or not settable")          \
  X(TeardownProfile, 0x5a0204, kBadParam, kTeardownProfile, "no such teardown profile")                   \
  X(PageCount, 0x5a0205, kBadParam, kPageList, "number of pages beyond the list")                         \
  X(PageAddress, 0x5a0206, kBadParam, kPageAddress, "page address not 4 KiB aligned")                     \
  X(PageTwice, 0x5a0207, kBadParam, kPageTwice, "page given twice")                                       \
  X(PageLimit, 0x5a02f0, kLim, kCount, "more pages than the card takes")                                  \
  X(InitPages, 0x5a020d, kBadSysState, kInitPages, "boot and init pages have not been given")             \
  X(Register, 0x5a0208, kBadParam, kRegister, "no such register")                                         \
  X(RegisterRead, 0x5a0209, kBadParam, kRegisterAccess, "register cannot be accessed that way")           \
  X(RegisterLength, 0x5a020a, kBadInpLen, kRegisterLength, "register data too short")                     \
  X(RegisterValue, 0x5a020b, kBadParam, kRegisterValue, "value not supported by the register")            \
  X(ResetBusy, 0x5a020e, kResBusy, kCount, "a reset is under way")                                        \
  X(ResetRefused, 0x5a020f, kBadSysState, kCount, "a host does not agree to the reset")                   \
  X(UpdateHandle, 0x5a0210, kResBusy, kCount, "another one holds the update of the firmware")             \
  X(UpdateState, 0x5a0211, kBadParam, kCount, "not by this handle, or not in this state of the update")   \
  X(UpdateFixed, 0x5a0212, kBadParam, kCount, "the component is neither written nor read by hosts")       \
  X(SfState, 0x5a0213, kBadResState, kCount, "not in this state of the sub-function")                     \
  X(MsixPool, 0x5a0214, kNoRes, kCount, "MSI-X vectors beyond the pool of virtual functions")             \
  X(TracerOwner, 0x5a0215, kBadParam, kCount, "another one owns the firmware's tracer")                   \
  X(TracerState, 0x5a0216, kBadParam, kCount, "not in this state of the firmware's tracer")               \
  X(TracerRing, 0x5a0217, kBadParam, kRegisterValue, "the tracer's key does not cover its ring")          \
  X(DumpNoObject, 0x5a0218, kBadRes, kCount, "no such object to be dumped")                               \
  X(DumpNoElement, 0x5a0219, kBadRes, kCount, "no such element of the ring")                              \
  X(DumpMemory, 0x5a021a, kBadRes, kRegisterValue, "memory of the dump cannot be reached")                \
  X(NvItem, 0x5a021b, kNoRes, kCount, "no such item of configuration")                                    \
  X(HostEndianness, 0x5a020c, kBadParam, kRegisterValue, "host endianness not supported")                 \
  /* PD, UAR, XRCD, transport domain, counters */                                                         \
  X(PdLimit, 0x5a0301, kLim, kCount, "no more PDs")                                                       \
  X(PdNumber, 0x5a0302, kBadRes, kNoObject, "no such PD")                                                 \
  X(PdBusy, 0x5a0303, kBadResState, kDestroyBusy, "PD in use")                                            \
  X(UarLimit, 0x5a0304, kLim, kCount, "no more UAR pages")                                                \
  X(UarNumber, 0x5a0305, kBadRes, kNoObject, "UAR page not allocated")                                    \
  X(XrcdLimit, 0x5a0306, kLim, kCount, "no more XRC domains")                                             \
  X(XrcdNumber, 0x5a0307, kBadRes, kNoObject, "no such XRC domain")                                       \
  X(XrcdBusy, 0x5a0308, kBadResState, kDestroyBusy, "XRC domain in use")                                  \
  X(TdLimit, 0x5a0309, kLim, kCount, "no more transport domains")                                         \
  X(TdNumber, 0x5a030a, kBadRes, kNoObject, "no such transport domain")                                   \
  X(QCounterLimit, 0x5a030b, kLim, kCount, "no more Q counters")                                          \
  X(QCounterNumber, 0x5a030c, kBadRes, kNoObject, "no such Q counter")                                    \
  X(QCounterBusy, 0x5a030d, kBadResState, kDestroyBusy, "Q counter in use")                               \
  /* event queues */                                                                                      \
  X(EqLimit, 0x5a0401, kLim, kCount, "no more EQs")                                                       \
  X(EqNumber, 0x5a0402, kBadRes, kNoObject, "no such EQ")                                                 \
  X(EqBusy, 0x5a0403, kBadResState, kDestroyBusy, "EQ in use by a CQ")                                    \
  X(EqSize, 0x5a0404, kLim, kCapLimit, "EQ larger than log_max_eq_sz")                                    \
  X(EqVector, 0x5a0405, kIx, kMsixVector, "no such MSI-X vector")                                         \
  X(EqPages, 0x5a0406, kBadParam, kQueuePages, "EQ's page list too short")                                \
  /* completion queues */                                                                                 \
  X(CqLimit, 0x5a0501, kLim, kCount, "no more CQs")                                                       \
  X(CqNumber, 0x5a0502, kBadRes, kNoObject, "no such CQ")                                                 \
  X(CqBusy, 0x5a0503, kBadResState, kDestroyBusy, "CQ in use by a QP or SRQ")                             \
  X(CqSize, 0x5a0504, kLim, kCapLimit, "CQ larger than log_max_cq_sz")                                    \
  X(CqeSize, 0x5a0505, kBadParam, kCqLayout, "CQE size not supported")                                    \
  X(CqPages, 0x5a0506, kBadParam, kQueuePages, "CQ's page list too short")                                \
  X(CqEq, 0x5a0507, kBadRes, kReference, "CQ's EQ does not exist")                                        \
  X(CqDbr, 0x5a0508, kBadParam, kDbrAlign, "CQ's doorbell record not 8-byte aligned")                     \
  X(CqFeature, 0x5a0509, kBadParam, kCapNotOffered, "CQ feature not offered")                             \
  X(CqResize, 0x5a050a, kBadResState, kCqLayout, "CQ cannot be resized to that")                          \
  X(CqModifyMask, 0x5a050b, kBadParam, kModifyMask, "MODIFY_CQ field not supported")                      \
  /* memory keys */                                                                                       \
  X(MkeyLimit, 0x5a0601, kLim, kCount, "no more mkeys")                                                   \
  X(MkeyNumber, 0x5a0602, kBadRes, kNoObject, "no such mkey")                                             \
  X(MkeyMode, 0x5a0603, kBadParam, kMkeyLayout, "access mode not supported")                              \
  X(MkeyPd, 0x5a0604, kBadRes, kReference, "mkey's PD does not exist")                                    \
  X(MkeyList, 0x5a0605, kBadParam, kMkeyList, "translation list shorter than its size says")              \
  X(MkeyListSize, 0x5a0606, kLim, kCapLimit, "translation list too long")                                 \
  X(MkeyPageSize, 0x5a0607, kBadParam, kMkeyLayout, "mkey page size not supported")                       \
  X(MkeyRange, 0x5a0608, kBadParam, kMkeyList, "translation list does not cover the length")              \
  X(MkeyFeature, 0x5a0609, kBadParam, kCapNotOffered, "mkey feature not offered")                         \
  X(FaultType, 0x5a06e1, kBadParam, kPageFault, "no such type of page fault")                             \
  X(FaultQueue, 0x5a06e2, kBadRes, kPageFault, "no such queue waits for a page")                          \
  X(FaultNone, 0x5a06e3, kBadResState, kPageFault, "the queue waits for no page")                         \
  X(MkeyWrap, 0x5a060a, kBadParam, kMkeyWrap, "start address plus length wraps")                          \
  X(MkeyMemic, 0x5a060b, kBadParam, kMkeyMemic, "mkey beyond its device memory")                          \
  /* device memory */                                                                                     \
  X(MemicSize, 0x5a0681, kBadParam, kMemic, "device memory size not supported")                           \
  X(MemicAlign, 0x5a0682, kBadParam, kMemic, "device memory alignment not supported")                     \
  X(MemicRange, 0x5a0683, kNoRes, kCount, "no such device memory free in the range")                      \
  X(MemicAddress, 0x5a0684, kBadRes, kNoObject, "no such device memory")                                  \
  X(MemicBusy, 0x5a0685, kBadResState, kDestroyBusy, "device memory in use by an mkey")                   \
  X(MemicOp, 0x5a0686, kBadParam, kMemic, "no such operation on device memory, or not its state")         \
  /* protection signature variables */                                                                    \
  X(PsvCount, 0x5a06c1, kBadParam, kPsv, "one to four PSVs by one command")                               \
  X(PsvPd, 0x5a06c2, kBadRes, kReference, "PSV's PD does not exist")                                      \
  X(PsvLimit, 0x5a06c3, kLim, kCount, "no more PSVs")                                                     \
  X(PsvNumber, 0x5a06c4, kBadRes, kNoObject, "no such PSV")                                               \
  /* shared receive queues */                                                                             \
  X(SrqLimit, 0x5a0701, kLim, kCount, "no more SRQs")                                                     \
  X(SrqNumber, 0x5a0702, kBadRes, kNoObject, "no such SRQ")                                               \
  X(SrqKind, 0x5a0703, kBadRes, kNoObject, "SRQ is of another kind")                                      \
  X(SrqBusy, 0x5a0704, kBadResState, kDestroyBusy, "SRQ in use by a QP")                                  \
  X(SrqSize, 0x5a0705, kLim, kCapLimit, "SRQ larger than log_max_srq_sz")                                 \
  X(SrqStride, 0x5a0706, kBadParam, kWqLayout, "SRQ stride not supported")                                \
  X(SrqPages, 0x5a0707, kBadParam, kQueuePages, "SRQ's page list too short")                              \
  X(SrqPd, 0x5a0708, kBadRes, kReference, "SRQ's PD does not exist")                                      \
  X(SrqXrcd, 0x5a0709, kBadRes, kReference, "SRQ's XRC domain does not exist")                            \
  X(SrqCq, 0x5a070a, kBadRes, kReference, "SRQ's CQ does not exist")                                      \
  X(SrqDbr, 0x5a070b, kBadParam, kDbrAlign, "SRQ's doorbell record not aligned")                          \
  X(SrqArm, 0x5a070c, kBadParam, kSrqLimit, "SRQ limit beyond its size")                                  \
  X(SrqFeature, 0x5a070d, kBadParam, kCapNotOffered, "SRQ feature not offered")                           \
  X(SrqState, 0x5a070e, kBadResState, kQueueState, "SRQ is not in the state named")                       \
  X(SrqTags, 0x5a070f, kBadParam, kWqLayout, "size of the matching list not supported")                   \
  /* queue pairs */                                                                                       \
  X(QpLimit, 0x5a0801, kLim, kCount, "no more QPs")                                                       \
  X(QpNumber, 0x5a0802, kBadRes, kNoObject, "no such QP")                                                 \
  X(QpType, 0x5a0803, kBadParam, kQpType, "transport service type not supported")                         \
  X(QpState, 0x5a0804, kBadQpState, kQpTransition, "transition not allowed from the QP's state")          \
  X(QpPd, 0x5a0805, kBadRes, kReference, "QP's PD does not exist")                                        \
  X(QpSendCq, 0x5a0806, kBadRes, kReference, "QP's send CQ does not exist")                               \
  X(QpRecvCq, 0x5a0807, kBadRes, kReference, "QP's receive CQ does not exist")                            \
  X(QpSrq, 0x5a0808, kBadRes, kReference, "QP's SRQ does not exist")                                      \
  X(QpUar, 0x5a0809, kBadRes, kReference, "QP's UAR page is not allocated")                               \
  X(QpSize, 0x5a080a, kLim, kCapLimit, "QP's queue larger than log_max_qp_sz")                            \
  X(QpPages, 0x5a080b, kBadParam, kQueuePages, "QP's page list too short")                                \
  X(QpDbr, 0x5a080c, kBadParam, kDbrAlign, "QP's doorbell record not 8-byte aligned")                     \
  X(QpRqType, 0x5a080d, kBadParam, kWqLayout, "rq_type not supported")                                    \
  X(QpFeature, 0x5a080e, kBadParam, kCapNotOffered, "QP feature not offered")                             \
  X(QpBusy, 0x5a080f, kBadResState, kDestroyBusy, "QP in a multicast group or named by a TIS")            \
  X(QpSpecial, 0x5a0810, kBadResState, kQpSpecial, "the port's special QP exists already")                \
  X(QpMtu, 0x5a0811, kBadParam, kQpMtu, "path MTU not supported")                                         \
  X(QpPath, 0x5a0812, kIx, kQpPath, "P_Key, GID or port index of the path out of range")                  \
  X(QpDepth, 0x5a0813, kBadParam, kQpDepth, "outstanding reads and atomics beyond the capability")        \
  X(QpOptMask, 0x5a0814, kBadParam, kQpOptMask, "optional parameter not supported by this transition")    \
  X(QpAtomicMode, 0x5a0815, kBadParam, kQpAtomicMode, "atomic mode not supported")                        \
  X(QpCounter, 0x5a0816, kBadRes, kReference, "QP's Q counter does not exist")                            \
  X(QpMsgSize, 0x5a0817, kBadParam, kQpMessage, "log_msg_max beyond the capability")                      \
  X(QpModelRefused, 0x5a0818, kIntErr, kCount, "the QP table refused the number")                         \
  X(QpXrcd, 0x5a0819, kBadRes, kReference, "QP's XRC domain does not exist")                              \
  X(QpStream, 0x5a081b, kBadResState, kCount, "the stream of the DCI has not failed")                     \
  X(DctNotDrained, 0x5a081a, kBadResState, kDctDrain, "DC target has not been drained")                   \
  /* multicast, vport, MAD */                                                                             \
  X(McgGid, 0x5a0901, kBadParam, kMcgGid, "not a multicast GID")                                          \
  X(McgFull, 0x5a0902, kLim, kCount, "multicast group or table full")                                     \
  X(McgNotAttached, 0x5a0903, kBadRes, kMcgAttached, "QP is not attached to the group")                   \
  X(McgQpType, 0x5a0904, kBadParam, kMcgGid, "only UD QPs attach to multicast groups")                    \
  X(GidIndex, 0x5a0905, kIx, kTableIndex, "GID index out of range")                                       \
  X(PkeyIndex, 0x5a0906, kIx, kTableIndex, "P_Key index out of range")                                    \
  X(VportField, 0x5a0907, kBadParam, kVport, "vport field cannot be modified")                            \
  X(MadFormat, 0x5a0908, kBadPkt, kMad, "not a MAD that the firmware answers")                            \
  X(MadKey, 0x5a090f, kBadPkt, kCount, "dropped: a MAD without the port's M_Key")                         \
  /* congestion control */                                                                                \
  X(CongProtocol, 0x5a0e01, kBadParam, kCongestion, "no such congestion control protocol")                \
  X(CongPriority, 0x5a0e02, kBadParam, kCongestion, "no such priority")                                   \
  X(CongParameter, 0x5a0e03, kBadParam, kCongestion, "parameter out of range or not selectable")          \
  X(RoceIndex, 0x5a0909, kIx, kTableIndex, "RoCE address index out of range")                             \
  X(RoceAddress, 0x5a090a, kBadParam, kRoceAddress, "RoCE address of a type not supported")               \
  X(VportList, 0x5a090b, kBadParam, kVport, "vport address list of that type or size not offered")        \
  X(L2Index, 0x5a090c, kIx, kTableIndex, "no such entry in the table of MAC addresses")                   \
  X(VxlanPort, 0x5a090d, kBadParam, kTableIndex, "not a UDP port that the function has registered")       \
  X(VxlanLimit, 0x5a090e, kLim, kCount, "no more UDP ports of VXLAN")                                     \
  /* queues of the Ethernet link */                                                                       \
  X(TisLimit, 0x5a0a01, kLim, kCount, "no more TISes")                                                    \
  X(TisNumber, 0x5a0a02, kBadRes, kNoObject, "no such TIS")                                               \
  X(TisBusy, 0x5a0a03, kBadResState, kDestroyBusy, "TIS in use by an SQ")                                 \
  X(TirLimit, 0x5a0a04, kLim, kCount, "no more TIRs")                                                     \
  X(TirNumber, 0x5a0a05, kBadRes, kNoObject, "no such TIR")                                               \
  X(TirBusy, 0x5a0a06, kBadResState, kDestroyBusy, "TIR in use by a flow entry")                          \
  X(TirHash, 0x5a0a07, kBadParam, kTir, "TIR's hash function or fields not supported")                    \
  X(TirFeature, 0x5a0a08, kBadParam, kCapNotOffered, "TIS or TIR feature not offered")                    \
  X(RqtLimit, 0x5a0a09, kLim, kCount, "no more RQTs")                                                     \
  X(RqtNumber, 0x5a0a0a, kBadRes, kNoObject, "no such RQT")                                               \
  X(RqtBusy, 0x5a0a0b, kBadResState, kDestroyBusy, "RQT in use by a TIR")                                 \
  X(RqtSize, 0x5a0a0c, kBadParam, kRqt, "RQT size not a power of two or too large")                       \
  X(RqtList, 0x5a0a0d, kBadInpLen, kRqt, "RQT's list shorter than its size says")                         \
  X(RqLimit, 0x5a0a0e, kLim, kCount, "no more RQs")                                                       \
  X(RqNumber, 0x5a0a0f, kBadRes, kNoObject, "no such RQ")                                                 \
  X(RqBusy, 0x5a0a10, kBadResState, kDestroyBusy, "RQ in use by a TIR or RQT")                            \
  X(RqState, 0x5a0a11, kBadResState, kQueueState, "RQ not in the state named, or no such transition")     \
  X(SqNumber, 0x5a0a12, kBadRes, kNoObject, "no such SQ")                                                 \
  X(SqState, 0x5a0a13, kBadResState, kQueueState, "SQ not in the state named, or no such transition")     \
  X(SqTis, 0x5a0a14, kBadParam, kSqTis, "SQ's list of TISes too long")                                    \
  X(WqType, 0x5a0a15, kBadParam, kWqLayout, "work queue type not supported")                              \
  X(WqSize, 0x5a0a16, kLim, kCapLimit, "work queue larger than log_max_wq_sz")                            \
  X(WqStride, 0x5a0a17, kBadParam, kWqLayout, "work queue stride not supported")                          \
  X(WqPages, 0x5a0a18, kBadParam, kQueuePages, "work queue's page list too short")                        \
  X(WqDbr, 0x5a0a19, kBadParam, kDbrAlign, "work queue's doorbell record not aligned")                    \
  X(WqFeature, 0x5a0a1a, kBadParam, kCapNotOffered, "work queue feature not offered")                     \
  X(ModifyMask, 0x5a0a1b, kBadParam, kModifyMask, "field cannot be modified")                             \
  X(TdBusy, 0x5a0a1c, kBadResState, kDestroyBusy, "transport domain in use")                              \
  X(TirLroPeriod, 0x5a0a1d, kBadParam, kTir, "TIR's LRO period is none of lro_timer_supported_periods")   \
  /* flow steering */                                                                                     \
  X(FlowTableLimit, 0x5a0b01, kLim, kCount, "no more flow tables")                                        \
  X(FlowTableNumber, 0x5a0b02, kBadRes, kNoObject, "no such flow table")                                  \
  X(FlowTableBusy, 0x5a0b03, kBadResState, kDestroyBusy, "flow table in use or not empty")                \
  X(FlowTableType, 0x5a0b04, kBadParam, kCapNotOffered, "flow table type not offered")                    \
  X(FlowTableSize, 0x5a0b05, kLim, kCapLimit, "flow table larger than log_max_ft_size")                   \
  X(FlowLevel, 0x5a0b06, kBadParam, kFlowLevel, "flow table level not above the one it follows")          \
  X(FlowMiss, 0x5a0b07, kBadParam, kFlowAction, "miss action not supported")                              \
  X(FlowGroupLimit, 0x5a0b08, kLim, kCount, "no more flow groups")                                        \
  X(FlowGroupNumber, 0x5a0b09, kBadRes, kNoObject, "no such flow group")                                  \
  X(FlowGroupBusy, 0x5a0b0a, kBadResState, kDestroyBusy, "flow group has entries")                        \
  X(FlowGroupRange, 0x5a0b0b, kBadParam, kFlowGroup, "flow group's range wrong, or another's")            \
  X(FlowCriteria, 0x5a0b0c, kBadParam, kFlowCriteria, "match criteria not supported")                     \
  X(FlowLimit, 0x5a0b0d, kLim, kCount, "no more flow entries")                                            \
  X(FlowIndex, 0x5a0b0e, kIx, kFlowIndex, "flow index outside of its group, or without an entry")         \
  X(FlowIndexUsed, 0x5a0b0f, kBadResState, kFlowIndex, "flow index has an entry already")                 \
  X(FlowAction, 0x5a0b10, kBadParam, kFlowAction, "flow action not supported")                            \
  X(FlowDestination, 0x5a0b11, kBadParam, kFlowAction, "flow destination not supported")                  \
  X(FlowList, 0x5a0b12, kBadInpLen, kFlowAction, "flow entry's list shorter than its size says")          \
  X(FlowCounterLimit, 0x5a0b13, kLim, kCount, "no more flow counters")                                    \
  X(FlowCounterNumber, 0x5a0b14, kBadRes, kNoObject, "no such flow counter")                              \
  X(FlowCounterBusy, 0x5a0b15, kBadResState, kDestroyBusy, "flow counter in use")                         \
  X(FlowCounterBulk, 0x5a0b16, kBadParam, kFlowCounter, "number of flow counters not supported")          \
  X(FlowFeature, 0x5a0b17, kBadParam, kCapNotOffered, "flow steering feature not offered")                \
  X(ModifyHeaderLimit, 0x5a0b18, kLim, kCount, "no more modify header contexts")                          \
  X(ModifyHeaderNumber, 0x5a0b19, kBadRes, kNoObject, "no such modify header context")                    \
  X(ModifyHeaderBusy, 0x5a0b1a, kBadResState, kDestroyBusy, "modify header context in use")               \
  X(ModifyHeaderAction, 0x5a0b1b, kBadParam, kModifyHeader, "header field or modification not supported") \
  X(ModifyHeaderList, 0x5a0b1c, kBadInpLen, kModifyHeader, "list of modifications shorter than it says")  \
  X(ReformatLimit, 0x5a0b1d, kLim, kCount, "no more packet reformat contexts")                            \
  X(ReformatNumber, 0x5a0b1e, kBadRes, kNoObject, "no such packet reformat context")                      \
  X(ReformatBusy, 0x5a0b1f, kBadResState, kDestroyBusy, "packet reformat context in use")                 \
  X(ReformatType, 0x5a0b20, kBadParam, kReformat, "packet reformat not supported")                        \
  X(ReformatData, 0x5a0b21, kBadParam, kReformat, "packet reformat data of a size not supported")         \
  X(ReformatList, 0x5a0b22, kBadInpLen, kReformat, "packet reformat data shorter than it says")           \
  X(FlowCounterMemory, 0x5a0b23, kBadRes, kCount, "memory for flow counters cannot be reached")           \
  /* steering by software */                                                                              \
  X(SwIcmLimit, 0x5a0d01, kLim, kCount, "no more SW ICM objects")                                         \
  X(SwIcmNumber, 0x5a0d02, kBadRes, kNoObject, "no such SW ICM object")                                   \
  X(SwIcmRange, 0x5a0d03, kBadParam, kSwIcm, "SW ICM outside of its area, not aligned, or taken")         \
  X(FlowSamplerLimit, 0x5a0d04, kLim, kCount, "no more flow samplers")                                    \
  X(FlowSamplerNumber, 0x5a0d05, kBadRes, kNoObject, "no such flow sampler")                              \
  X(FlowSamplerBusy, 0x5a0d06, kBadResState, kDestroyBusy, "flow sampler in use")                         \
  X(FlowSamplerRatio, 0x5a0d07, kBadParam, kSampler, "flow sampler's ratio is zero")                      \
  X(FlowMeterLimit, 0x5a0d08, kLim, kCount, "no more flow meters")                                        \
  X(FlowMeterNumber, 0x5a0d09, kBadRes, kNoObject, "no such flow meter")                                  \
  X(FlowMeterBusy, 0x5a0d0a, kBadResState, kDestroyBusy, "flow meter in use")                             \
  X(FlowMeterUse, 0x5a0d0b, kBadParam, kFlowAction, "an entry's flow meter or its register is wrong")     \
  X(MatchDefinerLimit, 0x5a0d0c, kLim, kCount, "no more match definers")                                  \
  X(MatchDefinerNumber, 0x5a0d0d, kBadRes, kNoObject, "no such match definer")                            \
  X(MatchDefinerBusy, 0x5a0d0e, kBadResState, kDestroyBusy, "match definer in use")                       \
  X(MatchDefinerFormat, 0x5a0d0f, kBadParam, kCapNotOffered, "match definer's format or fields unknown")  \
  X(HeaderArgumentLimit, 0x5a0d10, kLim, kCount, "no more arguments of rewriting lists")                  \
  X(HeaderArgumentNumber, 0x5a0d11, kBadRes, kNoObject, "no such arguments of rewriting lists")           \
  X(GeneveOptionLimit, 0x5a0d12, kLim, kCount, "no more options of Geneve")                               \
  X(GeneveOptionNumber, 0x5a0d13, kBadRes, kNoObject, "no such option of Geneve")                         \
  X(GeneveOptionLength, 0x5a0d14, kBadParam, kCapNotOffered, "length of a Geneve option not offered")     \
  /* migration */                                                                                         \
  X(MigrationFunction, 0x5a1001, kBadParam, kCmdFunction, "no function of that vhca_id that may migrate") \
  X(MigrationEnded, 0x5a1002, kBadResState, kCount, "the function has ended, or has failed")              \
  X(MigrationHeld, 0x5a1003, kBadResState, kCount, "the function is held, or it is not, or not so far")   \
  X(MigrationTracking, 0x5a1004, kBadResState, kCount, "incremental, and no image was tracked")           \
  X(MigrationIncomplete, 0x5a1005, kBadResState, kCount, "of an image not all records have come")         \
  X(MigrationSize, 0x5a1006, kBadParam, kCount, "the image is larger than there is room for")             \
  X(MigrationKey, 0x5a1007, kBadParam, kReference, "memory of the image cannot be reached by its mkey")   \
  X(MigrationImage, 0x5a1008, kBadParam, kCount, "the image is damaged, or of another kind of card")      \
  X(PageTrackValue, 0x5a1010, kBadParam, kCapNotOffered, "a page track's sizes, type, state not offered") \
  X(PageTrackRange, 0x5a1011, kBadParam, kGeneralObject, "ranges of a page track wrong, or their list")   \
  X(PageTrackQp, 0x5a1012, kBadRes, kReference, "no such QP for reports: RC, without a send queue")       \
  X(PageTrackLimit, 0x5a1013, kLim, kCount, "no more page tracks")                                        \
  X(PageTrackBusy, 0x5a1014, kBadResState, kCount, "the function's pages are tracked already")            \
  X(PageTrackReports, 0x5a1016, kLim, kCount, "too many messages of earlier reports are not received")    \
  X(PageTrackNumber, 0x5a1015, kBadRes, kNoObject, "no such page track")                                  \
  /* inside the firmware: the command waits until the driver gives pages, or is not done yet */           \
  X(WaitPages, 0x5a0f01, kNoRes, kCount, "waits for host pages")                                          \
  X(WaitHost, 0x5a0f02, kNoRes, kCount, "waits for the host's answer")                                    \
  X(Later, 0x5a0f03, kNoRes, kCount, "goes on at a time of its own")

namespace hcasim::fw {

enum class Syndrome : std::uint32_t {
#define HCASIM_X(name, number, status, rule, text) k##name = (number),
  HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
};

// A row of the table each, whatever it has in common with the next.
// NOLINTBEGIN(bugprone-branch-clone)
constexpr prm::CmdStatus status_of(Syndrome s) {
  switch (s) {
#define HCASIM_X(name, number, status, rule, text) \
  case Syndrome::k##name:                          \
    return prm::CmdStatus::status;
    HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
  }
  return prm::CmdStatus::kIntErr;
}

// Rule::kCount: none is broken.
constexpr traces::Rule rule_of(Syndrome s) {
  switch (s) {
#define HCASIM_X(name, number, status, rule, text) \
  case Syndrome::k##name:                          \
    return traces::Rule::rule;
    HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
  }
  return traces::Rule::kCount;
}

// NOLINTEND(bugprone-branch-clone)

constexpr const char* text_of(Syndrome s) {
  switch (s) {
#define HCASIM_X(name, number, status, rule, text) \
  case Syndrome::k##name:                          \
    return text;
    HCASIM_SYNDROMES(HCASIM_X)
#undef HCASIM_X
  }
  return "?";
}

}  // namespace hcasim::fw
#endif
