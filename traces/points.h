// SPDX-License-Identifier: BSD-3-Clause
/// The list of all trace points: meaning and units of each argument.
///
/// X(enumerator, name, kind, obj, index, a0, a1, help)
///   kind  kNormal: a stage of a WQE or its completion; kError: errors and retries, counted even when tracing
///         is off; kCommand, kObject: the firmware's side; kDetail: recorded on request only
///         (Tracer::set_filter()), because there are many; kPath: the same, of frames in flow tables.
///   obj   32 bits: what the record is about.
///   index 32 bits, a0 and a1 64 bits: arguments; "-" where unused (0).
///
/// "qpn" is the QPN or SQN of the WQE's *sender* (Tracer::tag() tells QPNs of different HCAs apart), and
/// "serial" the number of the WQE in that send queue: 0 for the first after RST, then counting up, 32 bits.
/// Points at the responder use the sender's qpn and serial, which an in-process packet carries beside its
/// headers; a packet from outside has qpn 0. All times are picoseconds of simulated time; a point may be
/// recorded ahead of its time, so records are not sorted.
///
/// New points go to the end of their group: files name their points, so numbers may change.
#pragma once

// clang-format off
#define HCASIM_TRACE_POINTS(X)                                                                               \
  /* The life of a WQE. doorbell, scheduled and wqe_fetch are of the queue: serial is that of the next WQE   \
     to be fetched, which a doorbell may be far ahead of. A WQE's doorbell is the first whose counter is not \
     below its own. */                                                                                       \
  X(kDoorbell,      doorbell,        kNormal, "qpn", "serial", "WQE counter of the last WQE posted",         \
    "UAR page", "a doorbell or BlueFlame write reached the HCA")                                             \
  X(kScheduled,     scheduled,       kNormal, "qpn", "serial", "WQEBBs to do", "-",                          \
    "the scheduler gave the send queue its turn")                                                            \
  X(kWqeFetch,      wqe_fetch,       kNormal, "qpn", "serial", "bytes", "SQ consumer counter (WQEBBs)",      \
    "the WQEs' bytes arrived from host memory")                                                              \
  X(kWqeParsed,     wqe_parsed,      kNormal, "qpn", "serial", "WQE opcode 7:0, WQE counter 31:16",          \
    "message bytes", "the WQE was decoded")                                                                  \
  X(kTranslated,    translated,      kNormal, "qpn", "serial", "scatter/gather elements", "cache misses",    \
    "MKEYs and MTTs of the WQE's data were looked up")                                                       \
  X(kGathered,      gathered,        kNormal, "qpn", "serial", "bytes", "-",                                 \
    "the last payload byte arrived from host memory")                                                        \
  X(kPacketTxFirst, packet_tx_first, kNormal, "qpn", "serial", "PSN 23:0, BTH opcode 31:24",                 \
    "payload bytes", "the first bit of the first packet left the port")                                      \
  X(kPacketTxLast,  packet_tx_last,  kNormal, "qpn", "serial", "PSN 23:0, BTH opcode 31:24", "packets",      \
    "the last bit of the last packet left the port")                                                         \
  X(kPacketRx,      packet_rx,       kNormal, "qpn", "serial", "PSN 23:0, BTH opcode 31:24",                 \
    "payload bytes", "a request packet arrived completely at the responder")                                 \
  X(kChecked,       checked,         kNormal, "qpn", "serial", "PSN 23:0, BTH opcode 31:24",                 \
    "responder QPN", "its PSN, P_Key and rights were found good")                                            \
  X(kRwqeFetch,     rwqe_fetch,      kNormal, "qpn", "serial", "receive WQE counter",                        \
    "receive queue: QPN, RQN or SRQN", "the receive WQE arrived from host memory")                           \
  X(kScattered,     scattered,       kNormal, "qpn", "serial", "bytes", "responder QPN",                     \
    "the message's last byte was written to host memory")                                                    \
  X(kAckTx,         ack_tx,          kNormal, "qpn", "serial", "PSN", "AETH syndrome",                       \
    "the responder sent an acknowledge")                                                                     \
  X(kAckRx,         ack_rx,          kNormal, "qpn", "serial", "PSN", "AETH syndrome",                       \
    "an acknowledge that completes the WQE arrived at the requester")                                        \
  X(kCqeWritten,    cqe_written,     kNormal, "qpn", "serial",                                               \
    "CQN 23:0, CQE opcode 31:24, syndrome 39:32, WQE counter 63:48",                                         \
    "CQ producer counter 31:0, bytes 63:32", "a CQE was written to host memory")                             \
  X(kEqeWritten,    eqe_written,     kNormal, "eqn", "EQ producer counter", "EQE type 7:0, sub type 15:8",   \
    "CQN of a completion event, else the object's number", "an EQE was written to host memory")              \
  X(kMsix,          msix,            kNormal, "vector", "-", "eqn", "-", "an MSI-X message was sent")        \
  X(kCqConsumed,    cq_consumed,     kNormal, "cqn", "CQ consumer counter", "-", "-",                        \
    "the driver's consumer counter was seen at this value")                                                  \
  X(kCqArmed,       cq_armed,        kNormal, "cqn", "CQ consumer counter", "1: solicited only", "-",        \
    "the driver asked for an event")                                                                         \
  X(kWqeDone,       wqe_done,        kNormal, "qpn", "serial", "syndrome 7:0, 1: a CQE is due 8", "-",       \
    "the WQE is complete, with or without a CQE")                                                            \
  /* RDMA READ and atomics */                                                                                \
  X(kReadReqRx,     read_req_rx,     kNormal, "qpn", "serial", "PSN", "bytes",                               \
    "a READ request arrived at the responder")                                                               \
  X(kReadRespTx,    read_resp_tx,    kNormal, "qpn", "serial", "PSN", "payload bytes",                       \
    "a READ response packet left the responder")                                                             \
  X(kReadRespRx,    read_resp_rx,    kNormal, "qpn", "serial", "PSN", "payload bytes",                       \
    "a READ response packet arrived at the requester")                                                       \
  X(kAtomicExec,    atomic_exec,     kNormal, "qpn", "serial", "operand address", "value before",            \
    "an atomic was executed at the responder")                                                               \
  X(kCtxMiss,       ctx_miss,        kNormal, "number", "-",                                                 \
    "cache: 0 QPC, 1 MKEY, 2 MTT, 3 CQC, 4 SRQC, 5 EQC", "ps", "a context was fetched from host memory")     \
  X(kMkeyChanged,   mkey_changed,    kNormal, "key",                                                         \
    "rights: 1 local read, 2 local write, 4 remote read, 8 remote write, 16 atomics; 256: invalid",          \
    "first address", "bytes", "a WQE registered or invalidated a memory key")                                \
  X(kGuestCode,     guest_code,      kNormal, "BAR0 offset", "first 4 bytes written", "program counter",     \
    "return address in a kernel module, if the program counter is in none",                                  \
    "the guest's code that writes to a register next (guest_pc=on)")                                         \
  /* Errors and retries */                                                                                   \
  X(kNakTx,         nak_tx,          kError,  "qpn", "serial", "PSN", "NAK code",                            \
    "the responder sent a NAK")                                                                              \
  X(kNakRx,         nak_rx,          kError,  "qpn", "serial", "PSN", "NAK code",                            \
    "a NAK arrived at the requester")                                                                        \
  X(kRnrTx,         rnr_tx,          kError,  "qpn", "serial", "PSN", "RNR timer code",                      \
    "no receive WQE: the responder sent an RNR NAK")                                                         \
  X(kRnrRx,         rnr_rx,          kError,  "qpn", "serial", "PSN", "RNR timer code",                      \
    "an RNR NAK arrived at the requester")                                                                   \
  X(kTimeout,       timeout,         kError,  "qpn", "serial", "oldest PSN not acked", "retries left",       \
    "the requester's ACK timer ran out")                                                                     \
  X(kRetransmit,    retransmit,      kError,  "qpn", "serial", "PSN to start again from", "packets",         \
    "the requester sends again")                                                                             \
  X(kDuplicate,     duplicate,       kError,  "qpn", "serial", "PSN", "PSN expected",                        \
    "the responder got a request again")                                                                     \
  X(kSeqErr,        seq_err,         kError,  "qpn", "serial", "PSN", "PSN expected",                        \
    "the responder misses a packet")                                                                         \
  X(kAccessErr,     access_err,      kError,  "qpn", "serial", "key", "address",                             \
    "key, rights or bounds of a memory access are wrong")                                                    \
  X(kWqeErr,        wqe_err,         kError,  "qpn", "serial", "CQE syndrome 7:0, vendor syndrome 15:8",     \
    "WQE opcode", "a WQE completed in error")                                                                \
  X(kRwqeErr,       rwqe_err,        kError,  "receiver", "receive WQE counter",                              \
    "CQE syndrome 7:0, vendor syndrome 15:8", "-", "a receive WQE completed in error")                       \
  X(kFlush,         flush,           kError,  "qpn", "serial", "WQE counter",                                \
    "0: send queue, 1: receive queue", "a WQE was flushed")                                                  \
  X(kCqOverrun,     cq_overrun,      kError,  "cqn", "CQ producer counter", "consumer counter", "-",         \
    "no room for a CQE")                                                                                     \
  X(kEqOverrun,     eq_overrun,      kError,  "eqn", "EQ producer counter", "consumer counter", "EQE type",  \
    "no room for an EQE")                                                                                    \
  X(kDmaErr,        dma_err,         kError,  "number", "-", "address", "bytes 31:0, 1: write 32",           \
    "the host refused a DMA")                                                                                \
  X(kPacketDrop,    packet_drop,     kError,  "qpn", "serial", "PSN 23:0, BTH opcode 31:24",                 \
    "reason: DropReason in drops.h",                                                                         \
    "a packet was dropped")                                                                                  \
  X(kDoorbellBad,   doorbell_bad,    kError,  "number",                                                      \
    "type of object: RuleObject in rules.h 7:0, 1: its doorbell record 8",                                   \
    "BAR0 offset, or the record's address", "value", "a doorbell names nothing that may be rung")            \
  X(kQpError,       qp_error,        kError,  "qpn", "-", "new state", "reason: CQE syndrome or EQE type",   \
    "a QP went to an error state by itself")                                                                 \
  X(kPageFault,     page_fault,      kError,  "qpn", "serial",                                               \
    "kind 7:0, QPN that waits 31:8, bytes of the message before 63:32", "address, or WQE's index",           \
    "a page was not there: the driver was notified")                                                             \
  X(kPageFaultDone, page_fault_done, kError,  "qpn", "serial", "kind 7:0, QPN that waits 31:8", "1: error",  \
    "the driver has dealt with a page fault")                                                                \
  X(kModelFault,    model_fault,     kError,  "-", "-", "-", "-", "an invariant of the model is broken")     \
  X(kRuleBroken,    rule_broken,     kError,  "object's number", "rule: its number in rule_list.h",          \
    "type of object: RuleObject in rules.h", "the first bytes that are wrong",                               \
    "the driver broke a validation rule; blob: the bytes")                                                   \
  /* The firmware's side. seq: number of the command since start; blob: the mailbox's bytes. */              \
  X(kCmdStart,      cmd_start,       kCommand, "slot", "seq", "opcode 15:0, op_mod 31:16, uid 47:32",        \
    "input bytes", "a command was taken from the queue; blob: input")                                        \
  X(kCmdDone,       cmd_done,        kCommand, "slot", "seq",                                                \
    "opcode 15:0, status 23:16, delivery status 31:24", "syndrome 31:0, output bytes 63:32",                 \
    "a command was answered; blob: output")                                                                  \
  X(kCmdBad,        cmd_bad,         kError,  "slot", "seq", "delivery status", "reason",                    \
    "a command queue entry or mailbox chain is wrong")                                                       \
  X(kObjCreate,     obj_create,      kObject, "number", "uid",                                               \
    "type: 1 PD 2 UAR 3 XRCD 4 TD 5 MKEY 6 EQ 7 CQ 8 QP 9 RMP 10 XRC SRQ 11 SRQ 12 Q counter 13 MCG " \
    "14 TIS 15 TIR 16 RQT 17 RQ 18 SQ", "-",                                                                 \
    "an object was made")                                                                                    \
  X(kObjDestroy,    obj_destroy,     kObject, "number", "uid", "type as in obj_create", "-",                 \
    "an object was destroyed")                                                                               \
  X(kPortState,     port_state,      kObject, "port", "-", "port state", "-", "the link changed")            \
  X(kHealth,        health,          kObject, "-", "1: the firmware stands still", "health syndrome", "-",   \
    "the health state changed")                                                                              \
  X(kDoorbellOff,   doorbell_off,    kObject, "number", "type of object: RuleObject in rules.h",             \
    "BAR0 offset", "value", "a doorbell was ignored, as the driver has switched the interface off")          \
  X(kFaultInjected, fault_injected,  kObject, "object's number", "fault: its place in the plan, from 1; 0: none", \
    "kind 7:0, action 15:8: their numbers in fault_list.h", "detail; command: seq 31:0, opcode 47:32",       \
    "a test or the user's options broke something on purpose")                                               \
  X(kCnpTx,         cnp_tx,          kObject, "qpn", "-", "destination QPN", "-",                            \
    "a congestion notification was sent for a marked packet")                                                \
  X(kCnpRx,         cnp_rx,          kObject, "qpn", "-", "rate in Mb/s, after it", "target rate in Mb/s",   \
    "a congestion notification came for the QP")                                                             \
  X(kPauseTx,       pause_tx,        kObject, "port", "-", "priorities", "quanta of the first",              \
    "the receive side asked the other port to pause, or (0) to go on")                                       \
  X(kPauseRx,       pause_rx,        kObject, "port", "-", "priorities that obey it", "quanta of the first", \
    "a pause frame arrived")                                                                                 \
  X(kTagOp,         tag_op,          kObject, "XRQ number", "-", "operation", "entry",                       \
    "an operation on the matching list of a tag-matching SRQ")                                               \
  X(kTagMatch,      tag_match,       kObject, "XRQ number", "-", "tag", "entry, or 0xffff: none matched",    \
    "a tagged message was looked up")                                                                        \
  X(kTls,           tls,             kObject, "TIS or TIR", "0: TIS, 1: TIR",                               \
    "what: 0 static parameters, 1 progress, 2 records lost, 3 one found, 4 confirmed, 5 its tag is wrong",   \
    "0: record number; 1, 2, 5: TCP sequence number; 3, 4: of the record found",                             \
    "encryption of TLS was set up for a connection, or follows its records anew")                            \
  X(kEspRefused,    esp_refused,     kError,  "IPsec object", "0: to be sent, 1: received",                   \
    "SPI 63:32, sequence number 31:0", "1 authentication failed, 2 no ESP or its trailer is wrong, 3 replayed, 4 beyond its lifetime",  \
    "a packet was not encrypted, and dropped, or not decrypted")                                             \
  X(kMacsecRefused, macsec_refused,  kError,  "MACsec object", "0: to be sent, 1: received",                   \
    "packet number", "syndrome 7:0: 1 authentication failed, 2 no SecTAG or a wrong one; 15:8: 1 replayed, 2 no number left", \
    "a frame was not protected, and dropped, or did not prove valid")                                         \
  X(kPspRefused,    psp_refused,     kError,  "SPI", "0: to be sent, 1: received",                           \
    "IV", "1 authentication failed, 2 no PSP packet or no key for it, 3 a version or an SPI that there is not", \
    "a packet of PSP was not encrypted, and dropped, or not decrypted")                                       \
  X(kTagRefused,    tag_refused,     kError,  "XRQ number", "-", "operation or tag", "entry",                \
    "a list operation or the data of a matched message failed")                                              \
  X(kLroEnd,        lro_end,         kObject, "rqn", "segments", "reason: LroEnd in lro_end.h 7:0, bytes 63:32", \
    "ps since the first segment came", "segments of one TCP connection go to the receive queue together (LRO)") \
  /* Detail: what each unit did, each access to the host's memory, each packet. */                           \
  X(kUnitBusy,      unit_busy,       kDetail,                                                                \
    "unit: 0 SQ and responder turns, 1 receive, 2 transmit, 3 CQE, 4 EQE, 5 atomics",                        \
    "which of those side by side", "QPN, or 0", "ps from this time on", "a unit was at work")                \
  X(kDmaRead,       dma_read,        kDetail, "bytes", "owner", "address", "ps until the last byte had come",  \
    "the host's memory was read; owner: kind 31:28 (1 QP 2 RQ 3 CQ 4 EQ 5 firmware), number 23:0")                                                                            \
  X(kDmaWrite,      dma_write,       kDetail, "bytes", "owner", "address, or MSI-X vector",                      \
    "ps until it was visible", "the host's memory was written")                                              \
  X(kEsp,           esp,             kDetail, "IPsec object", "0: sent, 1: received",                         \
    "SPI 63:32, sequence number 31:0", "bytes of the frame", "an ESP packet was encrypted or decrypted")      \
  X(kMacsec,        macsec,          kDetail, "MACsec object", "0: sent, 1: received",                        \
    "packet number", "bytes of the frame", "a frame was protected, or validated, by MACsec")                  \
  X(kPsp,           psp,             kDetail, "SPI", "0: sent, 1: received", "IV",                          \
    "bytes of the frame", "a packet of PSP was encrypted or decrypted")                                       \
  X(kPacketOut,     packet_out,      kDetail, "qpn", "serial", "PSN 23:0, BTH opcode 31:24",                 \
    "ps on the cable 31:0, bytes 63:32", "the first bit of a packet left the port")                          \
  X(kPacketIn,      packet_in,       kDetail, "qpn", "serial", "PSN 23:0, BTH opcode 31:24",                 \
    "ps on the cable 31:0, bytes 63:32", "the last bit of a packet arrived at the port")                     \
  /* The way of a frame through flow tables (`hcasim trace path`): path is the number of its first step,     \
     index that of this one. */                                                                              \
  X(kFrameEnters,   frame_enters,    kPath,   "path", "step",                                                \
    "where: flow table type 7:0 (4: E-Switch), from: vport, else function 31:8, step before 63:32",          \
    "sender's qpn 31:0, serial 63:32", "a frame comes to flow tables; blob: its first bytes")                \
  X(kFrameTable,    frame_table,     kPath,   "path", "step", "table 23:0, type 31:24, step before 63:32",   \
    "action 15:0, level 23:16, vport 39:24, flow index 63:40, all ones: none",                               \
    "a flow table was looked up")                                                                            \
  X(kFrameLeaves,   frame_leaves,    kPath,   "path", "step", "to: TIR, vport 31:0, step before 63:32",      \
    "how: FrameEnd in frame_end.h 7:0, bytes 63:32", "a frame, or a copy of it, has come to the end of flow tables")
// clang-format on

#include <cstdint>

namespace hcasim::traces {

enum class Kind : std::uint8_t { kNormal, kError, kCommand, kObject, kDetail, kPath };

#define HCASIM_X(id, name, kind, obj, index, a0, a1, help) id,
enum class Point : std::uint16_t { HCASIM_TRACE_POINTS(HCASIM_X) kCount };
#undef HCASIM_X

constexpr unsigned kPoints = static_cast<unsigned>(Point::kCount);

struct PointInfo {
  const char *name, *obj, *index, *a0, *a1, *help;
  Kind kind;
};

#define HCASIM_X(id, name, kind, obj, index, a0, a1, help) {#name, obj, index, a0, a1, help, Kind::kind},
inline constexpr PointInfo kPointInfo[kPoints] = {HCASIM_TRACE_POINTS(HCASIM_X)};
#undef HCASIM_X

// As Point::kCount, points of files are read that this version does not have.
inline constexpr PointInfo kUnknownPoint{"unknown", "-", "-", "-", "-", "of another version", Kind::kNormal};
constexpr const PointInfo& info(Point p) {
  return p < Point::kCount ? kPointInfo[static_cast<unsigned>(p)] : kUnknownPoint;
}
constexpr bool on_request(Point p) { return info(p).kind == Kind::kDetail || info(p).kind == Kind::kPath; }
constexpr bool is_error(Point p) { return info(p).kind == Kind::kError; }

/// Unit of Point::kUnitBusy.
enum class Unit : std::uint8_t { kTurns, kReceive, kTransmit, kCqe, kEqe, kAtomics };

/// Cache number of Point::kCtxMiss.
enum : std::uint64_t { kCacheQpc, kCacheMkey, kCacheMtt, kCacheCqc, kCacheSrqc, kCacheEqc, kCacheReads };

}  // namespace hcasim::traces
