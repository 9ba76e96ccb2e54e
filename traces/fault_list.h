// SPDX-License-Identifier: BSD-3-Clause
/// Faults that can be injected: kinds, their actions, and the keys that select when and how. One table, from
/// which help texts, the scenario parser (model/fault), the documentation page (`hcasim faults`) and the
/// descriptions in traces are made.
#ifndef HCASIM_TRACES_FAULT_LIST_H
#define HCASIM_TRACES_FAULT_LIST_H

#include <cstdint>

namespace hcasim::traces {

// clang-format off
/// X(id, name, moment, event, help). moment: kOnEvent: the fault acts on events of the kind; kAtTime: at a
/// time; kEither: at a time if `at` is given, else on an event. Trace files contain the numbers, so new rows go
/// to the end.
#define HCASIM_FAULT_KINDS(X)                                                                                  \
  X(kCommand,     "command",      kOnEvent, "a command is taken from the queue",                               \
    "a firmware command is refused, late, never answered, or answered without an event")                       \
  X(kDma,         "dma",          kOnEvent, "a DMA read or write of host memory",                              \
    "the host's side of PCIe refuses, poisons or delays a transfer")                                           \
  X(kMsix,        "msix",         kOnEvent, "an interrupt message",                                            \
    "an MSI-X message is lost or late; its EQE is in memory")                                                  \
  X(kCqe,         "cqe",          kOnEvent, "a completion", "a CQE is late (those behind it too), or lost")    \
  X(kEqe,         "eqe",          kOnEvent, "an event of an event queue",                                      \
    "an EQE is lost, or its queue goes to overrun as if it had been full")                                     \
  X(kQp,          "qp",           kEither,  "a send doorbell of a QP that can send",                           \
    "a QP goes to its error state, with the asynchronous event of such a failure")                             \
  X(kCq,          "cq",           kEither,  "a completion on the CQ", "a CQ fails, with its error event")      \
  X(kPageRequest, "page_request", kEither,  "the firmware asks for pages; refused: MANAGE_PAGES",              \
    "host pages for the firmware: a request is lost, an answer refused, or pages are asked for or given back") \
  X(kHealth,      "health",       kAtTime,  "-", "what the health registers of the initialization segment say") \
  X(kFwReset,     "fw_reset",     kAtTime,  "-", "the firmware resets the card")                                \
  X(kPort,        "port",         kAtTime,  "-", "the cable, and the port's error counters")                   \
  X(kTemperature, "temperature",  kAtTime,  "-", "TEMP_WARN_EVENT: sensors are too hot")                       \
  X(kModule,      "module",       kAtTime,  "-", "PORT_MODULE_EVENT: the cable's module")                      \
  X(kEvent,       "event",        kAtTime,  "-", "any asynchronous event, with these bytes")                   \
  X(kWire,        "wire",         kOnEvent, "a packet leaves (tx) or enters (rx) the port",                    \
    "a packet is harmed or late, or the link goes down")                                                       \
  X(kPcie,        "pcie",         kAtTime,  "-", "PCIe: an error reported by AER, or the card is pulled out")  \
  X(kModel,       "model",        kAtTime,  "-", "as if an invariant of the model were broken")

/// X(id, kind, name, help). The first action of a kind is its default.
#define HCASIM_FAULT_ACTIONS(X)                                                                                \
  X(kStatus,       kCommand,     "status",       "not executed, answered with status and syndrome (if one is given)") \
  X(kNever,        kCommand,     "never",        "neither executed nor answered")                              \
  X(kNoEvent,      kCommand,     "no-event",     "executed and answered, but no command event is sent")       \
  X(kError,        kDma,         "error",        "completer abort: no data, the owner sees an error")          \
  X(kPoisoned,     kDma,         "poisoned",     "reads: the data come marked bad, and AER reports a poisoned TLP") \
  X(kSlow,         kDma,         "slow",         "takes `delay` longer")                                       \
  X(kMsixLost,     kMsix,        "lost",         "never sent")                                                 \
  X(kMsixDelayed,  kMsix,        "delayed",      "sent `delay` later")                                         \
  X(kCqeDelayed,   kCqe,         "delayed",      "written `delay` later")                                      \
  X(kCqeLost,      kCqe,         "lost",         "never written")                                              \
  X(kEqeLost,      kEqe,         "lost",         "never written, nor its interrupt sent")                      \
  X(kEqeOverrun,   kEqe,         "overrun",      "neither this one nor any later one of the queue is written") \
  X(kCatas,        kQp,          "catas",        "to ERR with WQ_CATAS (local catastrophic error)")            \
  X(kAccess,       kQp,          "access",       "to ERR with WQ_ACCESS (local access violation)")             \
  X(kInvalid,      kQp,          "invalid",      "to ERR with WQ_INVALID_REQ (invalid request)")               \
  X(kPathMig,      kQp,          "path-mig",     "PATH_MIG_FAILED alone: the QP goes on")                      \
  X(kCqOverrun,    kCq,          "overrun",      "CQ error, syndrome 1; its QPs fail with it")                 \
  X(kCqAccess,     kCq,          "access",       "CQ error, syndrome 2; its QPs fail with it")                 \
  X(kPagesLost,    kPageRequest, "lost",         "the request event is not sent, and the firmware waits")      \
  X(kPagesRefused, kPageRequest, "refused",      "MANAGE_PAGES with pages is answered with status and syndrome") \
  X(kPagesAsk,     kPageRequest, "ask",          "the firmware asks for `pages`; negative: to take them back (needs `at`)") \
  X(kSyndrome,     kHealth,      "syndrome",     "`syndrome` and the assert fields are shown")                 \
  X(kStall,        kHealth,      "stall",        "the health counter stands still, commands are not taken")    \
  X(kNicDisabled,  kHealth,      "nic-disabled", "nic_interface reads \"disabled\"")                           \
  X(kSelf,         kFwReset,     "self",         "the function starts anew; the driver finds it disabled")     \
  X(kPortDown,     kPort,        "down",         "cable and module are out, for `duration` (0: until port/up)") \
  X(kPortUp,       kPort,        "up",           "cable and module are in")                                    \
  X(kPortErrors,   kPort,        "errors",       "the physical layer counts `count` more symbol errors")       \
  X(kHot,          kTemperature, "hot",          "the event is sent")                                          \
  X(kModError,     kModule,      "error",        "status \"error\", with `error`")                             \
  X(kPlugged,      kModule,      "plugged",      "status \"plugged\"; module 0: and the cable is in")            \
  X(kUnplugged,    kModule,      "unplugged",    "status \"unplugged\"; module 0: and the cable is out")         \
  X(kDisabled,     kModule,      "disabled",     "status \"disabled\"")                                        \
  X(kEventSent,    kEvent,       "sent",         "the event is sent")                                          \
  X(kDrop,         kWire,        "drop",         "lost")                                                       \
  X(kCorrupt,      kWire,        "corrupt",      "fails its CRC at the receiver")                              \
  X(kDuplicate,    kWire,        "duplicate",    "arrives twice")                                              \
  X(kReorder,      kWire,        "reorder",      "held back for `delay` (5 us), later ones overtake it")       \
  X(kWireDelay,    kWire,        "delay",        "arrives `delay` later")                                      \
  X(kGarble,       kWire,        "garble",       "fields are changed at random, checksums made right")         \
  X(kWireDown,     kWire,        "down",         "the packet is lost, and the link is down for `duration`")    \
  X(kAer,          kPcie,        "aer",          "`error` is reported, with `severity` (AER's)")                 \
  X(kRemove,       kPcie,        "remove",       "surprise removal")                                           \
  X(kModelFault,   kModel,       "fault",        "the HCA goes to its fatal health state")                      \
  X(kInsert,       kPcie,        "insert",       "the card is put back, as after power-on")                     \
  X(kSync,         kFwReset,     "sync",         "the driver is asked, as by another host (MFRL); nobody to be asked: at once")

/// X(id, name, type, allowed, help). type: how the value is parsed (FaultValue).
#define HCASIM_FAULT_KEYS(X)                                                                                   \
  X(kAt,          "at",          kTime,    "a time", "simulated time from which on it waits, or at which it acts; \"+20us\": from now") \
  X(kAfter,       "after",       kTime,    "a time", "begin of the window in which it strikes")                \
  X(kUntil,       "until",       kTime,    "a time", "end of that window")                                     \
  X(kNth,         "nth",         kNumber,  "1 to 2^32", "the nth matching event is the first that it affects (1)") \
  X(kTimes,       "times",       kNumber,  "0 to 2^32", "how often it strikes, one matching event after the other (1; with probability: 0); 0: always") \
  X(kEvery,       "every",       kEvery,   "events, or a time", "every so many matching events, or (kinds that act at a time) every so long") \
  X(kProbability, "probability", kShare,   "0 to 1", "share of the matching events that it affects, at random (1)") \
  X(kSeed,        "seed",        kNumber,  "0 to 2^64-1", "start of its random numbers (the scenario's seed and its place there)") \
  X(kAction,      "action",      kAction,  "see the kind", "what happens")                                     \
  X(kOpcode,      "opcode",      kOpcode,  "a name or number", "of a command (CREATE_CQ), or of a packet (BTH: ACK, WRITE_FIRST)") \
  X(kOpMod,       "op_mod",      kRange,   "a number or A-B", "modifier of the command")                       \
  X(kStatus,      "status",      kStatus,  "a name or number", "status of the answer (BAD_RES_STATE)")         \
  X(kSyndrome,    "syndrome",    kNumber,  "0 to 2^32-1", "of the answer; health: 0 to 255, 0 takes it back")  \
  X(kAnswer,      "answer",      kAction,  "never, no-event", "the same as action")                            \
  X(kDelay,       "delay",       kTime,    "a time", "how much later")                                         \
  X(kDirection,   "direction",   kDirection, "dma: read, write; wire: tx, rx", "which way")                    \
  X(kOwner,       "owner",       kOwner,   "qp, rq, cq, eq, firmware", "who the transfer is made for; of reads it is known for qp (WQEs, payload) and firmware (commands) only") \
  X(kNumber,      "number",      kRange,   "a number or A-B", "number of the owner; firmware: command slot")   \
  X(kAddress,     "address",     kRange,   "a number or A-B", "bus addresses that the transfer touches")       \
  X(kVector,      "vector",      kRange,   "a number or A-B", "MSI-X vector")                                  \
  X(kEqn,         "eqn",         kRange,   "a number or A-B", "event queue")                                   \
  X(kCqn,         "cqn",         kRange,   "a number or A-B", "completion queue")                              \
  X(kQpn,         "qpn",         kRange,   "a number or A-B", "queue pair; wire: destination QP")              \
  X(kPsn,         "psn",         kRange,   "a number or A-B", "packet sequence number")                        \
  X(kType,        "type",        kEqeType, "a name or number", "event type (PORT_CHANGE)")                     \
  X(kSubType,     "sub_type",    kNumber,  "0 to 255", "event subtype")                                        \
  X(kData,        "data",        kBytes,   "up to 28 bytes in hexadecimal", "the event's data")                \
  X(kFunction,    "function",    kNumber,  "0 to 1023", "PCIe function of the card (any; at a time: 0, or all of qp and cq)") \
  X(kPages,       "pages",       kSigned,  "-65536 to 65536, not 0", "how many are asked for (128)")           \
  X(kReset,       "reset",       kFlag,    "on, off", "the health buffer requests a reset: the driver takes the card down and up (off)") \
  X(kExtSyndrome, "ext_syndrome", kNumber, "0 to 0xffff", "extended syndrome")                                 \
  X(kDuration,    "duration",    kTime,    "a time", "how long it lasts; 0: for good")                         \
  X(kCount,       "count",       kNumber,  "1 to 2^32", "how many")                                            \
  X(kSensors,     "sensors",     kNumber,  "1 to 2^64-1", "bit mask of the sensors (1: the chip's)")           \
  X(kModule,      "module",      kNumber,  "0 to 255", "number of the module (0)")                             \
  X(kError,       "error",       kError,   "see below", "module: what is wrong with it; pcie: the error's name") \
  X(kSeverity,    "severity",    kSeverity, "correctable, nonfatal, fatal", "of the PCIe error")

/// X(number, name): port module errors (error_type of the event).
#define HCASIM_MODULE_ERRORS(X)                                                                                \
  X(0x0, "power-budget") X(0x1, "long-range") X(0x2, "bus-stuck") X(0x3, "no-eeprom") X(0x4, "part-number")    \
  X(0x5, "unknown-identifier") X(0x6, "high-temperature") X(0x7, "bad-cable") X(0xc, "pcie-power-slot")

/// X(correctable, constant of linux/pci_regs.h for its bit of the AER status register, name)
#define HCASIM_PCIE_ERRORS(X)                                                                                  \
  X(true,  PCI_ERR_COR_RCVR,       "receiver-error")                                                           \
  X(true,  PCI_ERR_COR_BAD_TLP,    "bad-tlp")                                                                  \
  X(true,  PCI_ERR_COR_BAD_DLLP,   "bad-dllp")                                                                 \
  X(true,  PCI_ERR_COR_REP_ROLL,   "replay-num-rollover")                                                      \
  X(true,  PCI_ERR_COR_REP_TIMER,  "replay-timer-timeout")                                                     \
  X(true,  PCI_ERR_COR_ADV_NFAT,   "advisory-nonfatal")                                                        \
  X(true,  PCI_ERR_COR_INTERNAL,   "corrected-internal")                                                       \
  X(true,  PCI_ERR_COR_LOG_OVER,   "header-log-overflow")                                                      \
  X(false, PCI_ERR_UNC_DLP,        "data-link-protocol")                                                       \
  X(false, PCI_ERR_UNC_SURPDN,     "surprise-down")                                                            \
  X(false, PCI_ERR_UNC_POISON_TLP, "poisoned-tlp")                                                             \
  X(false, PCI_ERR_UNC_FCP,        "flow-control-protocol")                                                    \
  X(false, PCI_ERR_UNC_COMP_TIME,  "completion-timeout")                                                       \
  X(false, PCI_ERR_UNC_COMP_ABORT, "completer-abort")                                                          \
  X(false, PCI_ERR_UNC_UNX_COMP,   "unexpected-completion")                                                    \
  X(false, PCI_ERR_UNC_RX_OVER,    "receiver-overflow")                                                        \
  X(false, PCI_ERR_UNC_MALF_TLP,   "malformed-tlp")                                                            \
  X(false, PCI_ERR_UNC_ECRC,       "ecrc-error")                                                               \
  X(false, PCI_ERR_UNC_UNSUP,      "unsupported-request")                                                      \
  X(false, PCI_ERR_UNC_ACSV,       "acs-violation")                                                            \
  X(false, PCI_ERR_UNC_INTN,       "uncorrectable-internal")
// clang-format on

enum class FaultMoment : std::uint8_t { kOnEvent, kAtTime, kEither };
enum class FaultValue : std::uint8_t {
  kTime,
  kNumber,
  kSigned,
  kRange,
  kEvery,
  kShare,
  kFlag,
  kAction,
  kOpcode,
  kStatus,
  kEqeType,
  kDirection,
  kOwner,
  kError,
  kSeverity,
  kBytes
};

#define HCASIM_X(id, name, moment, event, help) id,
enum class FaultType : std::uint8_t { HCASIM_FAULT_KINDS(HCASIM_X) kCount };
#undef HCASIM_X
#define HCASIM_X(id, kind, name, help) id,
enum class FaultAction : std::uint8_t { HCASIM_FAULT_ACTIONS(HCASIM_X) kCount };
#undef HCASIM_X
#define HCASIM_X(id, name, type, allowed, help) id,
enum class FaultKey : std::uint8_t { HCASIM_FAULT_KEYS(HCASIM_X) kKeys };
#undef HCASIM_X

constexpr unsigned kFaultKinds = static_cast<unsigned>(FaultType::kCount);
constexpr unsigned kFaultActions = static_cast<unsigned>(FaultAction::kCount);
constexpr unsigned kFaultKeys = static_cast<unsigned>(FaultKey::kKeys);

struct FaultTypeInfo {
  const char* name;
  FaultMoment moment;
  const char *event, *help;
};
struct FaultActionInfo {
  FaultType kind;
  const char *name, *help;
};
struct FaultKeyInfo {
  const char* name;
  FaultValue type;
  const char *allowed, *help;
};

#define HCASIM_X(id, name, moment, event, help) {name, FaultMoment::moment, event, help},
inline constexpr FaultTypeInfo kFaultKindInfo[kFaultKinds] = {HCASIM_FAULT_KINDS(HCASIM_X)};
#undef HCASIM_X
#define HCASIM_X(id, kind, name, help) {FaultType::kind, name, help},
inline constexpr FaultActionInfo kFaultActionInfo[kFaultActions] = {HCASIM_FAULT_ACTIONS(HCASIM_X)};
#undef HCASIM_X
#define HCASIM_X(id, name, type, allowed, help) {name, FaultValue::type, allowed, help},
inline constexpr FaultKeyInfo kFaultKeyInfo[kFaultKeys] = {HCASIM_FAULT_KEYS(HCASIM_X)};
#undef HCASIM_X

constexpr const FaultTypeInfo& info(FaultType k) { return kFaultKindInfo[static_cast<unsigned>(k)]; }
constexpr const FaultActionInfo& info(FaultAction a) { return kFaultActionInfo[static_cast<unsigned>(a)]; }
constexpr const FaultKeyInfo& info(FaultKey k) { return kFaultKeyInfo[static_cast<unsigned>(k)]; }

/// a0 of Point::kFaultInjected.
constexpr std::uint64_t fault_word(FaultType kind, FaultAction action) {
  return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(action) << 8;
}
/// nullptr: unknown to this version.
constexpr const FaultTypeInfo* fault_kind_of(std::uint64_t a0) {
  return (a0 & 0xff) < kFaultKinds ? &kFaultKindInfo[a0 & 0xff] : nullptr;
}
constexpr const FaultActionInfo* fault_action_of(std::uint64_t a0) {
  return (a0 >> 8 & 0xff) < kFaultActions ? &kFaultActionInfo[a0 >> 8 & 0xff] : nullptr;
}

using FaultKeys = std::uint64_t;  ///< bit n: FaultKey n
static_assert(kFaultKeys <= 64);
template <class... K>
constexpr FaultKeys fault_keys(K... keys) {
  return (FaultKeys{0} | ... | (FaultKeys{1} << static_cast<unsigned>(keys)));
}

/// The keys that a kind accepts besides those of the trigger.
constexpr FaultKeys own_keys(FaultType kind) {
  using K = FaultKey;
  switch (kind) {
    case FaultType::kCommand:
      return fault_keys(K::kAction, K::kAnswer, K::kOpcode, K::kOpMod, K::kStatus, K::kSyndrome, K::kDelay,
                        K::kFunction);
    case FaultType::kDma:
      return fault_keys(K::kAction, K::kDirection, K::kOwner, K::kNumber, K::kAddress, K::kDelay,
                        K::kFunction);
    case FaultType::kMsix:
      return fault_keys(K::kAction, K::kVector, K::kEqn, K::kDelay, K::kFunction);
    case FaultType::kCqe:
      return fault_keys(K::kAction, K::kCqn, K::kQpn, K::kDelay, K::kFunction);
    case FaultType::kEqe:
      return fault_keys(K::kAction, K::kType, K::kEqn, K::kFunction);
    case FaultType::kQp:
      return fault_keys(K::kAction, K::kQpn, K::kFunction);
    case FaultType::kCq:
      return fault_keys(K::kAction, K::kCqn, K::kFunction);
    case FaultType::kPageRequest:
      return fault_keys(K::kAction, K::kFunction, K::kPages, K::kStatus, K::kSyndrome);
    case FaultType::kHealth:
      return fault_keys(K::kAction, K::kSyndrome, K::kExtSyndrome, K::kReset, K::kDuration, K::kFunction);
    case FaultType::kPort:
      return fault_keys(K::kAction, K::kDuration, K::kCount);
    case FaultType::kTemperature:
      return fault_keys(K::kAction, K::kSensors);
    case FaultType::kModule:
      return fault_keys(K::kAction, K::kModule, K::kError);
    case FaultType::kEvent:
      return fault_keys(K::kAction, K::kType, K::kSubType, K::kData, K::kFunction);
    case FaultType::kWire:
      return fault_keys(K::kAction, K::kDirection, K::kOpcode, K::kQpn, K::kPsn, K::kDelay, K::kDuration);
    case FaultType::kPcie:
      return fault_keys(K::kAction, K::kError, K::kSeverity, K::kFunction);
    case FaultType::kFwReset:
      return fault_keys(K::kAction, K::kFunction);
    default:
      return fault_keys(K::kAction);
  }
}
/// The keys of the trigger.
constexpr FaultKeys trigger_keys(FaultType kind) {
  using K = FaultKey;
  const FaultKeys timed = fault_keys(K::kAt, K::kTimes, K::kEvery, K::kProbability, K::kSeed);
  return info(kind).moment == FaultMoment::kAtTime ? timed
                                                   : timed | fault_keys(K::kNth, K::kAfter, K::kUntil);
}

}  // namespace hcasim::traces
#endif
