// SPDX-License-Identifier: BSD-3-Clause
/// The validation rules for drivers: the one list that the checks, `hcasim rules`, the documentation page and
/// the tests read.
///
/// X(enumerator, number, name, severity, source, text)
///   number    appears in trace files: never reused.
///   severity  kError: work, data or the driver's view of the device is lost. kWarning: the device refuses
///   with
///             a status or ignores it, without further effect.
///   source    PRM: chapter of the "Mellanox Adapters Programmer's Reference Manual"; IBTA: section of the
///             InfiniBand specification, volume 1; mlx5_ifc.h, device.h, qp.h, cq.h, eq.h, doorbell.h: Linux,
///             include/linux/mlx5 or drivers/net/ethernet/mellanox/mlx5/core.
///   text      the rule, as a statement that has to hold.
#pragma once

// clang-format off
#define HCASIM_RULES(X) \
  /* 1xx: BAR0 and the command queue */ \
  X(kBarRange, 101, "bar-range", kError, "PRM: PCI BAR space", \
    "accesses to BAR0 lie within it") \
  X(kBarSize, 102, "bar-access-size", kError, "PRM: initialization segment; device.h mlx5_init_seg", \
    "registers of the initialization segment are written as aligned words of 4 bytes, one or two at a time") \
  X(kIsegRegister, 103, "iseg-register", kWarning, "device.h mlx5_init_seg", \
    "of the initialization segment only cmdq_addr_h, cmdq_addr_l_sz and cmd_dbell are written") \
  X(kUarRead, 104, "uar-read", kWarning, "PRM: UAR", \
    "UAR pages are written only") \
  X(kMemicAccess, 105, "memic-access", kError, "PRM: device memory; mlx5_ifc.h alloc_memic_out", \
    "device memory is accessed where ALLOC_MEMIC has given it, and in the sizes that its operations take") \
  X(kCmdqAddress, 111, "cmdq-address", kError, "PRM: command queue; device.h mlx5_init_seg.cmdq_addr_l_sz", \
    "the command queue lies on a page of 4 KiB; the bits below are the interface's state, or zero") \
  X(kCmdqEarly, 112, "cmdq-doorbell-early", kError, "PRM: command queue; device.h mlx5_init_seg.cmd_dbell", \
    "the command doorbell is rung only when the queue's address is in force") \
  X(kCmdqBusySlot, 113, "cmdq-slot-busy", kError, "PRM: command queue", \
    "a slot is not rung again before its command has been answered") \
  X(kCmdqOwnership, 114, "cmdq-ownership", kError, "device.h mlx5_cmd_layout.status_own", \
    "an entry belongs to the hardware when its doorbell is rung") \
  X(kCmdqType, 115, "cmdq-entry-type", kError, "device.h mlx5_cmd_layout.type", \
    "the entry's type is the PCI transport") \
  X(kCmdqSignature, 116, "cmdq-signature", kError, "device.h mlx5_cmd_layout.sig, mlx5_cmd_prot_block.sig", \
    "the signature of the entry, and of each mailbox when checksums are on, is right") \
  X(kCmdqInLength, 117, "cmdq-input-length", kError, "device.h mlx5_cmd_layout.inlen", \
    "the input is at least 8 bytes long, and no longer than the interface takes") \
  X(kCmdqOutLength, 118, "cmdq-output-length", kError, "device.h mlx5_cmd_layout.outlen", \
    "the output has room for at least 8 bytes, and no more than the interface gives") \
  X(kCmdqInPointer, 119, "cmdq-input-pointer", kError, "device.h mlx5_cmd_layout.in_ptr", \
    "the chain of input mailboxes is as long as the input, each aligned to 512 bytes and readable") \
  X(kCmdqOutPointer, 120, "cmdq-output-pointer", kError, "device.h mlx5_cmd_layout.out_ptr", \
    "the chain of output mailboxes is as long as the output, each aligned to 512 bytes and readable") \
  X(kCmdqToken, 121, "cmdq-mailbox-token", kError, "device.h mlx5_cmd_prot_block.token", \
    "mailboxes have the token of their entry") \
  X(kCmdqBlock, 122, "cmdq-mailbox-order", kError, "device.h mlx5_cmd_prot_block.block_num", \
    "mailboxes of a chain are numbered from 0 on") \
  X(kCmdqReserved, 123, "cmdq-entry-reserved", kWarning, "device.h mlx5_cmd_layout.rsvd0, rsvd1", \
    "reserved bytes of the entry are zero") \
  X(kCmdqMailboxReserved, 124, "cmdq-mailbox-reserved", kWarning, "device.h mlx5_cmd_prot_block.rsvd0", \
    "reserved bytes of an input mailbox are zero") \
  X(kCmdqChanged, 125, "cmdq-entry-changed", kError, "device.h mlx5_cmd_layout.status_own", \
    "nothing of an entry changes while the hardware owns it") \
  /* 2xx: commands, life cycle, host pages, registers */ \
  X(kCmdOpcode, 201, "cmd-opcode", kWarning, "mlx5_ifc.h MLX5_CMD_OP_*", \
    "the opcode is one of this device's") \
  X(kCapNotOffered, 202, "cap-not-offered", kWarning, "mlx5_ifc.h cmd_hca_cap", \
    "nothing is asked for whose capability bit QUERY_HCA_CAP does not show") \
  X(kCmdInputShort, 203, "cmd-input-short", kWarning, "mlx5_ifc.h, the command's input structure", \
    "the input is as long as the command's structure and the lists that it announces") \
  X(kCmdOutputShort, 204, "cmd-output-short", kWarning, "mlx5_ifc.h, the command's output structure", \
    "the output has room for the command's structure") \
  X(kBeforeEnable, 205, "access-before-enable", kWarning, "PRM: initialization flow; mlx5_ifc.h enable_hca_in", \
    "before ENABLE_HCA only NOP, QUERY_ISSI and the like are asked for") \
  X(kBeforeInit, 206, "access-before-init", kWarning, "PRM: initialization flow; mlx5_ifc.h init_hca_in", \
    "objects are made and used after INIT_HCA only") \
  X(kAfterInit, 207, "cmd-after-init", kWarning, "PRM: initialization flow", \
    "what sets up the function is asked for before INIT_HCA") \
  X(kCmdOpMod, 208, "cmd-op-mod", kWarning, "mlx5_ifc.h, op_mod of the command's input", \
    "op_mod is one that the opcode has") \
  X(kCmdReserved, 209, "cmd-reserved-bits", kWarning, "mlx5_ifc.h, reserved_at_* of the command's input", \
    "reserved bits of a command's input are zero") \
  X(kCmdFunction, 210, "cmd-function", kWarning, "mlx5_ifc.h function_id, vport_number, port_num", \
    "functions, virtual ports and ports that are named exist") \
  X(kUid, 211, "devx-uid", kWarning, "mlx5_ifc.h uid", \
    "uid is 0 or a user context that CREATE_UCTX has made") \
  X(kUserCommand, 212, "devx-command", kWarning, "mlx5_ifc.h uctx.cap", \
    "a user context does only what it has the right to") \
  X(kUserOwner, 213, "devx-owner", kWarning, "PRM: user contexts", \
    "a user context names its own objects only") \
  X(kCapSet, 214, "cap-set", kWarning, "mlx5_ifc.h set_hca_cap_in", \
    "capabilities are set within their maximum, in groups that there are") \
  X(kCapLimit, 215, "cap-limit", kWarning, "mlx5_ifc.h cmd_hca_cap.log_max_*", \
    "sizes stay within the capability that bounds them") \
  X(kIssi, 216, "issi", kWarning, "mlx5_ifc.h set_issi_in.current_issi", \
    "the interface version is one that QUERY_ISSI shows") \
  X(kTeardownProfile, 217, "teardown-profile", kWarning, "mlx5_ifc.h teardown_hca_in.profile", \
    "TEARDOWN_HCA's profile is one of the three") \
  X(kInitPages, 218, "init-pages", kError, "PRM: initialization flow; mlx5_ifc.h query_pages_out.num_pages", \
    "the pages for boot and init are given before INIT_HCA") \
  X(kPageList, 219, "page-list", kWarning, "mlx5_ifc.h manage_pages_in.input_num_entries", \
    "MANAGE_PAGES lists as many pages as it says") \
  X(kPageAddress, 220, "page-address", kError, "mlx5_ifc.h manage_pages_in.pas", \
    "pages given to the device are aligned to 4 KiB and not page 0") \
  X(kPageTwice, 221, "page-given-twice", kError, "mlx5_ifc.h manage_pages_in.pas", \
    "a page is not given to the device while it has it") \
  X(kFirmwarePage, 222, "page-of-firmware-used", kError, "PRM: host memory for the device (ICM)", \
    "memory given to the device with MANAGE_PAGES is not used for a queue until it is taken back") \
  X(kTeardownObjects, 223, "teardown-objects", kWarning, "PRM: teardown flow; mlx5_ifc.h teardown_hca_in", \
    "a graceful TEARDOWN_HCA finds no object left") \
  X(kPagesKept, 224, "pages-not-taken-back", kWarning, "PRM: teardown flow; mlx5_ifc.h disable_hca_in", \
    "all pages are taken back before DISABLE_HCA") \
  X(kEnableTwice, 225, "enable-twice", kWarning, "PRM: initialization flow; mlx5_ifc.h enable_hca_in", \
    "ENABLE_HCA finds the function off: after reset, or DISABLE_HCA") \
  X(kRegister, 226, "register-unknown", kWarning, "mlx5_ifc.h access_register_in.register_id", \
    "the register is one of this device's") \
  X(kRegisterAccess, 227, "register-access", kWarning, "mlx5_ifc.h access_register_in.op_mod", \
    "the register can be read, or written, as asked") \
  X(kRegisterLength, 228, "register-length", kWarning, "mlx5_ifc.h access_register_in.register_data", \
    "the register's data are as long as its layout") \
  X(kRegisterValue, 229, "register-value", kWarning, "PRM: access registers", \
    "values written to a register are among those that it takes") \
  X(kFunctionsLeft, 230, "teardown-functions", kWarning, "mlx5_ifc.h disable_hca_in.function_id, teardown_hca_in", \
    "a graceful TEARDOWN_HCA of who manages functions finds them ended by DISABLE_HCA") \
  X(kEventUnheard, 231, "event-unheard", kWarning, "mlx5_ifc.h nic_vport_context.arm_change_event, create_eq_in.event_bitmask", \
    "changes of a vport are watched when an event queue takes NIC_VPORT_CHANGE") \
  /* 3xx: objects */ \
  X(kNoObject, 301, "object-unknown", kWarning, "PRM: commands; status BAD_RES, driver.h mlx5_cmd_check", \
    "a command names an object that there has been") \
  X(kUseAfterDestroy, 302, "use-after-destroy", kError, "PRM: commands; status BAD_RES", \
    "an object is not named again after it was destroyed") \
  X(kDestroyBusy, 303, "destroy-busy", kWarning, "PRM: commands; status BAD_RES_STATE", \
    "an object is destroyed, or changed, when nothing uses it any more") \
  X(kReference, 304, "object-reference", kWarning, "mlx5_ifc.h: pd, cqn, c_eqn, uar_page, xrcd, srqn of contexts", \
    "what an object is made of exists when it is made") \
  X(kQueuePages, 305, "queue-pages", kWarning, "mlx5_ifc.h pas[], log_page_size, page_offset", \
    "a queue's page list covers the queue") \
  X(kDbrAlign, 306, "dbr-alignment", kWarning, "mlx5_ifc.h dbr_addr", \
    "doorbell records are aligned to 8 bytes (of SRQs to 4)") \
  X(kUmem, 307, "umem-use", kWarning, "mlx5_ifc.h umem, cq_umem_id, dbr_umem_id", \
    "a queue lies wholly within its UMEM, aligned, and may be written when the device writes it") \
  X(kQueueState, 308, "queue-state", kWarning, "mlx5_ifc.h modify_rq_in.rq_state, modify_sq_in.sq_state", \
    "a work queue is in the state that the command names, and may go to the one it asks for") \
  X(kModifyMask, 309, "modify-mask", kWarning, "mlx5_ifc.h modify_bitmask, modify_field_select", \
    "only fields that can be changed are changed") \
  X(kMsixVector, 310, "msix-vector", kWarning, "mlx5_ifc.h eqc.intr", \
    "an EQ's interrupt is a vector of the MSI-X table") \
  X(kCqLayout, 311, "cq-layout", kWarning, "mlx5_ifc.h cqc.cqe_sz, modify_cq_in", \
    "the CQE size is one that there is, and a resized CQ has room for what it holds") \
  X(kSrqLimit, 312, "srq-limit", kWarning, "mlx5_ifc.h arm_rq_in.lwm; IBTA 10.2.9", \
    "an SRQ's limit is not beyond its size") \
  X(kWqLayout, 313, "wq-layout", kWarning, "mlx5_ifc.h wq.wq_type, log_wq_stride, qpc.rq_type", \
    "type, stride and lists of a work queue are among those that there are") \
  X(kQpType, 314, "qp-type", kWarning, "mlx5_ifc.h qpc.st", \
    "the transport service is one that the device has on this link") \
  X(kQpSpecial, 315, "qp-special", kWarning, "IBTA 10.2.4, special QPs", \
    "QP0 and QP1 of a port are made once") \
  X(kDctDrain, 316, "dct-drain", kError, "mlx5_ifc.h drain_dct_in", \
    "a DC target is drained before it is destroyed") \
  X(kMcgGid, 317, "multicast-gid", kWarning, "IBTA 10.5.2; mlx5_ifc.h attach_to_mcg_in", \
    "UD QPs are attached to multicast GIDs") \
  X(kMcgAttached, 318, "multicast-attached", kWarning, "IBTA 11.3.2; mlx5_ifc.h detach_from_mcg_in", \
    "a QP is detached from a group that it is attached to") \
  X(kTableIndex, 319, "table-index", kWarning, "mlx5_ifc.h gid_index, pkey_index, roce_address_index", \
    "indices lie within the port's tables of GIDs, P_Keys, RoCE addresses and rates") \
  X(kRoceAddress, 320, "roce-address", kWarning, "mlx5_ifc.h roce_addr_layout", \
    "a RoCE address is of a version and kind that the device has") \
  X(kVport, 321, "vport-field", kWarning, "mlx5_ifc.h modify_nic_vport_field_select, hca_vport_context", \
    "only offered fields and lists of a virtual port are changed") \
  X(kMad, 322, "mad-format", kWarning, "IBTA 13.4; mlx5_ifc.h mad_ifc_in", \
    "MAD_IFC carries a MAD that the firmware answers") \
  X(kCongestion, 323, "congestion-parameter", kWarning, "mlx5_ifc.h modify_cong_params_in", \
    "congestion control is asked for protocols, priorities and values that there are") \
  X(kGeneralObject, 324, "general-object", kWarning, "mlx5_ifc.h general_obj_in_cmd_hdr", \
    "a general object is of an offered type, and uses no range or alias") \
  X(kSched, 325, "sched-element", kWarning, "mlx5_ifc.h scheduling_context", \
    "scheduling elements are of offered types, below a parent, and not too deep") \
  X(kMemic, 326, "memic-size", kWarning, "mlx5_ifc.h alloc_memic_in; device_mem_cap", \
    "device memory is asked for in sizes, alignments, ranges and operations that the capability shows") \
  X(kPsv, 327, "psv-count", kWarning, "mlx5_ifc.h create_psv_in.num_psv", \
    "CREATE_PSV asks for one to four") \
  X(kPageFault, 328, "page-fault-resume", kWarning, "mlx5_ifc.h page_fault_resume_in", \
    "PAGE_FAULT_RESUME answers a queue that waits for a page") \
  X(kTir, 329, "tir-hash", kWarning, "mlx5_ifc.h tirc.rx_hash_fn, rx_hash_field_select", \
    "a TIR's hash function and fields are offered") \
  X(kRqt, 330, "rqt-size", kWarning, "mlx5_ifc.h rqtc.rqt_max_size, rqt_actual_size", \
    "an RQT's size is a power of two within the capability, and its list as long") \
  X(kSqTis, 331, "sq-tis", kWarning, "mlx5_ifc.h sqc.tis_lst_sz", \
    "an SQ names as many TISes as it may") \
  X(kFlowLevel, 332, "flow-level", kWarning, "mlx5_ifc.h flow_table_context.level", \
    "a table follows one of a lower level only") \
  X(kFlowGroup, 333, "flow-group-range", kWarning, "mlx5_ifc.h create_flow_group_in.start_flow_index", \
    "a group lies within its table, and over no other group") \
  X(kFlowCriteria, 334, "flow-criteria", kWarning, "mlx5_ifc.h fte_match_param", \
    "rules match on fields that are offered") \
  X(kFlowIndex, 335, "flow-index", kWarning, "mlx5_ifc.h set_fte_in.flow_index", \
    "an entry lies within its group; a new one where there is none") \
  X(kFlowAction, 336, "flow-action", kWarning, "mlx5_ifc.h flow_context.action, destination", \
    "actions and destinations of an entry are offered for its table") \
  X(kFlowCounter, 337, "flow-counter-bulk", kWarning, "mlx5_ifc.h alloc_flow_counter_in.flow_counter_bulk", \
    "counters are asked for in numbers that are offered") \
  X(kModifyHeader, 338, "modify-header", kWarning, "mlx5_ifc.h set_action_in, add_action_in", \
    "a header rewrite changes fields that can be changed") \
  X(kReformat, 339, "packet-reformat", kWarning, "mlx5_ifc.h packet_reformat_context_in", \
    "a packet reformat is of an offered type and size") \
  X(kSampler, 340, "flow-sampler", kWarning, "mlx5_ifc.h sampler_obj", \
    "a sampler's ratio is not zero") \
  X(kSwIcm, 341, "sw-icm-range", kWarning, "mlx5_ifc.h sw_icm", \
    "SW ICM is asked for within its area, aligned, and free") \
  X(kQpTransition, 351, "qp-state-transition", kWarning, "IBTA 10.3.1; mlx5_ifc.h rst2init_qp_in ...", \
    "a QP is modified along the edges of its state diagram, from the state that it is in") \
  X(kQpOptMask, 352, "qp-optional-mask", kWarning, "IBTA 11.2.5.2; mlx5_ifc.h opt_param_mask", \
    "a transition carries only optional attributes that it has") \
  X(kQpMtu, 353, "qp-mtu", kWarning, "IBTA 11.2.5.2; mlx5_ifc.h qpc.mtu", \
    "the path MTU is one of the five, and not beyond the port's") \
  X(kQpPath, 354, "qp-path", kWarning, "mlx5_ifc.h ads.pkey_index, src_addr_index, vhca_port_num", \
    "P_Key, GID and port of a path exist") \
  X(kQpDepth, 355, "qp-read-depth", kWarning, "mlx5_ifc.h qpc.log_rra_max, log_sra_max", \
    "outstanding reads and atomics stay within the capability") \
  X(kQpAtomicMode, 356, "qp-atomic-mode", kWarning, "mlx5_ifc.h qpc.atomic_mode; atomic_caps", \
    "the atomic mode is offered") \
  X(kQpMessage, 357, "qp-message-max", kWarning, "mlx5_ifc.h qpc.log_msg_max; cmd_hca_cap.log_max_msg", \
    "the longest message is within the capability") \
  X(kPsnRange, 358, "psn-range", kError, "IBTA 9.7.2; mlx5_ifc.h qpc.next_rcv_psn, next_send_psn", \
    "PSNs have 24 bits") \
  X(kMkeyLayout, 361, "mkey-layout", kWarning, "mlx5_ifc.h mkc.access_mode_1_0, log_page_size", \
    "access mode and page size of a key are offered") \
  X(kMkeyList, 362, "mkey-list", kWarning, "mlx5_ifc.h mkc.translations_octword_size, create_mkey_in.pas", \
    "a key's translation list is as long as it says, and covers the key's length") \
  X(kMkeyWrap, 363, "mkey-wrap", kWarning, "IBTA 10.6.3; mlx5_ifc.h mkc.start_addr, len", \
    "a key's start and length do not wrap") \
  X(kMkeyMemic, 364, "mkey-memic", kWarning, "mlx5_ifc.h mkc.start_addr, alloc_memic_out", \
    "a key of device memory lies within it") \
  X(kMkeyPages, 365, "mkey-pages", kError, "mlx5_ifc.h mtt.ptag, mkc.log_page_size", \
    "the pages that a key is created with lie at multiples of its page size") \
  X(kForeignObject, 366, "object-of-another-function", kError, "PRM: name spaces of a function's objects", \
    "a function's driver names objects of its own, and none of another function of the card") \
  /* 4xx: doorbells */ \
  X(kUarNotAllocated, 401, "uar-not-allocated", kError, "PRM: UAR; mlx5_ifc.h alloc_uar_out.uar", \
    "while the interface is on, doorbells are written to UAR pages that ALLOC_UAR has given") \
  X(kUarRegister, 402, "uar-register", kError, "PRM: UAR; eq.h MLX5_EQ_DOORBEL_OFFSET, cq.h MLX5_CQ_DOORBELL", \
    "of a UAR page only its doorbell registers are written") \
  X(kUarSize, 403, "uar-store-size", kError, "PRM: UAR; doorbell.h mlx5_write64", \
    "EQ doorbells are stores of 4 bytes, others of 8 or two halves in turn, and bursts of 256 at most") \
  X(kSqDoorbellNoQp, 404, "sq-doorbell-no-queue", kError, "PRM: doorbells; qp.h mlx5_wqe_ctrl_seg.qpn_ds", \
    "a send doorbell names a QP or SQ that there is") \
  X(kSqDoorbellReset, 405, "sq-doorbell-reset", kError, "IBTA 10.3.1.1", \
    "nothing is posted to a QP in RESET") \
  X(kSqDoorbellUar, 406, "sq-doorbell-uar", kError, "PRM: UAR; mlx5_ifc.h uar_page of contexts", \
    "a doorbell of a queue, CQ or EQ is rung on the UAR page that it was made with") \
  X(kCqArmNoCq, 407, "cq-arm-no-cq", kError, "PRM: doorbells; cq.h mlx5_cq_arm", \
    "a CQ that is armed exists") \
  X(kEqDoorbellNoEq, 408, "eq-doorbell-no-eq", kError, "PRM: doorbells; eq.h", \
    "an EQ whose doorbell is rung exists") \
  /* 5xx: completion and event queues */ \
  X(kCqArmIndex, 501, "cq-arm-index", kError, "cq.h mlx5_cq_arm; PRM: CQ doorbell", \
    "the consumer index of an arming doorbell is not beyond the last CQE") \
  X(kCqArmSn, 502, "cq-arm-stale-sn", kError, "cq.h mlx5_core_cq.arm_sn", \
    "the sequence number of an arming doorbell counts the CQ's events, not beyond those sent or back, " \
    "unless a later doorbell has overtaken it") \
  X(kCqArmRecord, 503, "cq-arm-record", kError, "cq.h mlx5_cq_arm; mlx5_core_cq.arm_db", \
    "the arm word stands in the doorbell record before the doorbell is rung") \
  X(kCqRecordJump, 504, "cq-record-jump", kError, "cq.h mlx5_cq_set_ci; mlx5_core_cq.set_ci_db", \
    "the consumer index in the record is not beyond the last CQE") \
  X(kCqRecordBack, 505, "cq-record-back", kError, "cq.h mlx5_cq_set_ci", \
    "the consumer index in the record never goes back") \
  X(kCqOverrun, 506, "cq-overrun", kError, "IBTA 11.6.3.1", \
    "a CQ has room for the completions of all WQEs posted") \
  X(kEqIndex, 507, "eq-index-jump", kError, "eq.h; PRM: EQ doorbell", \
    "the consumer index of an EQ doorbell is not beyond the last EQE") \
  X(kEqOverrun, 508, "eq-overrun", kError, "PRM: event queues", \
    "an EQ's entries are taken before it is full") \
  /* 6xx: work queues and WQEs */ \
  X(kSqRecordJump, 601, "dbr-jump", kError, "qp.h mlx5_core_qp; PRM: doorbell records", \
    "the send counter of a record moves by no more than the queue holds") \
  X(kSqRecordBack, 602, "dbr-back", kError, "PRM: doorbell records", \
    "the send counter of a record never goes back") \
  X(kSqOverrun, 603, "sq-overrun", kError, "IBTA 10.8; PRM: send queue", \
    "a WQE is not written over before it has completed") \
  X(kDoorbellEarly, 604, "wqe-doorbell-before-visible", kError, "PRM: doorbells; doorbell.h", \
    "WQE, then record, then doorbell: the record is past the WQE that the doorbell names") \
  X(kRqRecordJump, 605, "rq-record-jump", kError, "PRM: doorbell records", \
    "the receive counter of a record moves by no more than the queue holds") \
  X(kSrqRecordJump, 606, "srq-record-jump", kError, "PRM: SRQ doorbell record", \
    "the counter of an SRQ's record moves by no more than the SRQ holds") \
  X(kSrqLink, 607, "srq-link", kError, "qp.h mlx5_wqe_srq_next_seg.next_wqe_index", \
    "the list of an SRQ's WQEs leads to WQEs of the SRQ") \
  X(kWqeIndex, 608, "wqe-index", kError, "qp.h mlx5_wqe_ctrl_seg.opmod_idx_opcode", \
    "a WQE that was announced is in its place in the ring and has its own index") \
  X(kWqeSize, 609, "wqe-size", kError, "qp.h mlx5_wqe_ctrl_seg.qpn_ds", \
    "a WQE's size is not zero, and not larger than what is posted") \
  X(kWqeQpn, 610, "wqe-qpn", kError, "qp.h mlx5_wqe_ctrl_seg.qpn_ds", \
    "a WQE names the queue that it lies in") \
  X(kWqeOpcode, 611, "wqe-opcode", kError, "IBTA 10.8; device.h MLX5_OPCODE_*", \
    "the operation is one of the QP's transport") \
  X(kWqeSegment, 612, "wqe-segment", kError, "PRM: WQE format; qp.h mlx5_wqe_*_seg", \
    "the segments of a WQE are whole, and those of its operation") \
  X(kWqeLength, 613, "wqe-length", kError, "IBTA 11.4.1.1; mlx5_ifc.h qpc.log_msg_max", \
    "a message is no longer than the QP's maximum (a datagram, than the MTU), an atomic's as long as its operand") \
  X(kWqeUmr, 614, "wqe-umr", kError, "PRM: UMR; qp.h mlx5_wqe_umr_ctrl_seg", \
    "a UMR, or a signature's, names a key of the QP's domain that takes it, in the state that it says") \
  X(kWqeTag, 615, "wqe-tag", kWarning, "PRM: tag matching", \
    "operations on a matching list name entries that there are, and tell how many messages the software has seen") \
  X(kWqeHeaders, 616, "wqe-headers", kError, "qp.h mlx5_wqe_eth_seg.inline_hdr", \
    "a large send holds headers that can be segmented, and its MSS is not zero") \
  X(kRwqeSegment, 617, "rwqe-segment", kError, "qp.h mlx5_wqe_data_seg", \
    "a receive WQE holds data segments alone") \
  /* 618: a rule that was wrong, on reserved bytes of address vectors */ \
  X(kAvSource, 619, "av-source", kError, "qp.h mlx5_av.grh_gid_fl; IBTA annex A17", \
    "an address vector's source is an entry of the port's table, and on Ethernet it has a GRH") \
  X(kAtomicUnaligned, 620, "atomic-unaligned", kError, "IBTA 9.4.5", \
    "the remote address of an atomic is aligned to its operand") \
  X(kReceiveLength, 621, "receive-length", kWarning, "IBTA 9.7.4.1.6, 10.8.3", \
    "a receive WQE has room for the message that comes") \
  X(kWqeTls, 622, "wqe-tls", kError, "mlx5_ifc.h tls_static_params, tls_progress_params; device.h MLX5_OPC_MOD_TLS_*", \
    "parameters of TLS are for a TIS or TIR that has it, with a key of the queue's domain, and what leaves by the TIS are records") \
  /* 7xx: memory */ \
  X(kMrKey, 701, "mr-key", kError, "IBTA 10.6.7.2; mlx5_ifc.h mkc", \
    "an L_Key names a key that is registered and not invalidated") \
  X(kMrPd, 702, "mr-pd", kError, "IBTA 10.6.3; mlx5_ifc.h mkc.pd, mkc.qpn", \
    "an L_Key belongs to the protection domain (and QP) of the queue that uses it") \
  X(kMrRights, 703, "mr-rights", kError, "IBTA 10.6.3; mlx5_ifc.h mkc.lr, lw", \
    "a local access has its right") \
  X(kMrBounds, 704, "mr-bounds", kError, "IBTA 10.6.3; mlx5_ifc.h mkc.start_addr, len", \
    "a local access lies within its memory region") \
  X(kMrList, 705, "mr-list", kError, "PRM: memory keys; mlx5_ifc.h mtt, klm", \
    "translation lists cover what is accessed, and indirect keys lead to keys that allow it") \
  X(kRemoteKey, 706, "rkey-unknown", kWarning, "IBTA 9.7.4.1.5, 10.6.7.2", \
    "an R_Key that comes from the wire is registered, not invalidated, and may be (when it is to be) invalidated") \
  X(kRemotePd, 707, "rkey-pd", kWarning, "IBTA 10.6.7.2", \
    "an R_Key that comes from the wire is of the QP's protection domain") \
  X(kRemoteRights, 708, "rkey-rights", kWarning, "IBTA 9.7.4.1.5; mlx5_ifc.h mkc.rr, rw, a", \
    "a remote access has its right in the key") \
  X(kRemoteBounds, 709, "rkey-bounds", kWarning, "IBTA 9.7.4.1.5", \
    "a remote access lies within its memory region or window") \
  X(kQpRights, 710, "qp-rights", kWarning, "IBTA 9.7.4.1.3; mlx5_ifc.h qpc.rre, rwe, rae", \
    "a remote access is one that the QP allows") \
  X(kDmaRead, 711, "dma-refused-read", kError, "PCIe: completer errors; PRM: host memory", \
    "memory that the device reads is mapped for it as long as its object lives") \
  X(kDmaPayload, 712, "dma-refused-payload", kError, "PCIe: completer errors; IBTA 10.6.6", \
    "memory behind a key is mapped for the device until the key is gone") \
  X(kDmaCqe, 713, "dma-refused-cqe", kError, "PCIe: completer errors", \
    "a CQ's ring is mapped for the device until DESTROY_CQ is answered") \
  X(kDmaEqe, 714, "dma-refused-eqe", kError, "PCIe: completer errors", \
    "an EQ's ring is mapped for the device until DESTROY_EQ is answered") \
  X(kDmaAnswer, 715, "dma-refused-answer", kError, "PCIe: completer errors", \
    "the command queue and its mailboxes are mapped until the command is answered")
// clang-format on
