// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/validate.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "firmware-stub/firmware.h"
#include "prm/info.h"
#include "prm/psp.h"
#include "prm/qos.h"
#include "prm/tir.h"
#include "prm/user_commands.h"

namespace hcasim::fw {

using traces::Rule;
using traces::RuleObject;

namespace {

// The bits of a structure that are fields, from `base` on; what follows a list that ends with the buffer is
// one.
class FieldBits {
 public:
  explicit FieldBits(const prm::StructInfo& s) : bytes_((s.bits + 7) / 8) { structure(s, 0); }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }
  // A field that mlx5_ifc.h does not have (yet).
  template <class F>
  void add() {
    mark(F::bit_off, F::bits);
  }
  // One that it has, and that this command leaves reserved.
  template <class F>
  void remove() {
    for (std::uint64_t b = F::bit_off; b < std::min<std::uint64_t>(F::bit_off + F::bits, bytes_.size() * 8);
         ++b)
      bytes_[b / 8] = static_cast<std::uint8_t>(bytes_[b / 8] & ~(0x80u >> b % 8));
  }

 private:
  void structure(const prm::StructInfo& s, std::uint64_t base) {
    for (std::uint32_t i = 0; i < s.field_count; ++i) {
      const prm::FieldInfo& f = s.fields[i];
      const std::uint64_t at = base + f.bit_off;
      if (f.count == 0) {
        mark(at, bytes_.size() * 8 > at ? bytes_.size() * 8 - at : 0);
        continue;
      }
      const auto n = static_cast<std::uint64_t>(std::max(f.count, 1));
      for (std::uint64_t k = 0; k < n; ++k) {
        const prm::StructInfo* inner = f.nested_struct();
        if (inner != nullptr)
          structure(*inner, at + k * f.bits);
        else
          mark(at + k * f.bits, f.bits);
      }
    }
  }
  void mark(std::uint64_t at, std::uint64_t bits) {
    for (std::uint64_t b = at; b < std::min<std::uint64_t>(at + bits, bytes_.size() * 8); ++b)
      bytes_[b / 8] = static_cast<std::uint8_t>(bytes_[b / 8] | 0x80u >> b % 8);
  }
  std::vector<std::uint8_t> bytes_;
};

const std::vector<std::uint8_t>& field_bits(std::uint16_t opcode) {
  static auto* const known = new std::unordered_map<std::uint16_t, std::vector<std::uint8_t>>;
  const auto found = known->find(opcode);
  if (found != known->end()) return found->second;
  std::vector<std::uint8_t>& bits = (*known)[opcode];
  if (const prm::StructInfo* s = prm::input_struct(opcode)) {
    FieldBits fields(*s);
    if (opcode == prm::op::INIT2INIT_QP || opcode == prm::op::RTS2RTS_QP) {
      fields.add<prm::qp_ext::qpc_ext>();
      fields.add<prm::qp_ext::opt_param_mask_95_32>();
      fields.add<prm::qp_ext::qos_queue_group_id_requester>();
      fields.add<prm::qp_ext::qos_queue_group_id_responder>();
    }
    if (opcode == prm::op::SET_HCA_CAP) {  // as drivers give back what they were answered
      constexpr unsigned block = prm::set_hca_cap_in::capability::bit_off;
      fields.add<prm::cap_access_register_user_at<block>>();
      fields.add<prm::cap_flow_counters_dump_at<block>>();
    }
    if (opcode == prm::op::QUERY_FLOW_COUNTER) {
      fields.add<prm::query_flow_counter_mkey>();
      fields.add<prm::query_flow_counter_address>();
      fields.add<prm::query_flow_counter_dump_to_memory>();
    }
    if (opcode == prm::op::MODIFY_TIR) fields.add<prm::modify_tir_indirect_table>();
    if (opcode == prm::op::CREATE_FLOW_GROUP)
      fields.add<prm::psp::match_syndrome_of<prm::create_flow_group_in::match_criteria::bit_off>>();
    if (opcode == prm::op::SET_FLOW_TABLE_ENTRY)
      fields.add<prm::psp::match_syndrome_of<prm::set_fte_in::flow_context::match_value::bit_off>>();
    // What an element is, and below which one, is said when it is made.
    if (opcode == prm::op::MODIFY_SCHEDULING_ELEMENT) {
      using Context = prm::modify_scheduling_element_in::scheduling_context;
      fields.remove<Context::element_type>();
      fields.remove<Context::element_attributes>();
      fields.remove<Context::parent_element_id>();
    }
    bits = fields.take();
  }
  return bits;
}

// Dword 2 of a command that works on an object names it, in bits 23:0.
std::uint32_t number_of(const Command& cmd) {
  return cmd.in.size() >= 12 ? prm::load32(cmd.in.data() + 8) & 0xffffff : 0;
}

// Whether the objects that a refused command can have meant are, or have been, there.
enum class Look { kIs, kWas };

template <class T>
bool look_into(Table<T>& table, std::uint32_t number, Look look) {
  if (number == 0) return false;
  const bool is = table.find(number) != nullptr;
  return look == Look::kIs ? is : !is && table.generation(number) != 0;
}

bool look_for(Objects& o, Syndrome syndrome, std::uint32_t number, Look look) {
  const auto in = [&](auto& table) { return look_into(table, number, look); };
  switch (syndrome) {
    case Syndrome::kPdNumber:
      return in(o.pds);
    case Syndrome::kUarNumber:
      return in(o.uars);
    case Syndrome::kXrcdNumber:
      return in(o.xrcds);
    case Syndrome::kTdNumber:
      return in(o.tds);
    case Syndrome::kEqNumber:
      return in(o.eqs);
    case Syndrome::kCqNumber:
      return in(o.cqs);
    case Syndrome::kMkeyNumber:
      return in(o.mkeys);
    case Syndrome::kSrqNumber:
      return in(o.srqs);
    case Syndrome::kQpNumber:
    case Syndrome::kSqNumber:
      return in(o.qps);
    case Syndrome::kRqNumber:
      return in(o.rqs);
    case Syndrome::kTisNumber:
      return in(o.tises);
    case Syndrome::kTirNumber:
      return in(o.tirs);
    case Syndrome::kRqtNumber:
      return in(o.rqts);
    case Syndrome::kUmemNumber:
      return in(o.umems);
    default:
      return false;
  }
}

}  // namespace

Rule rule_of(prm::CmdDelivery delivery) {
  using prm::CmdDelivery;
  switch (delivery) {
    case CmdDelivery::kSignature:
      return Rule::kCmdqSignature;
    case CmdDelivery::kToken:
      return Rule::kCmdqToken;
    case CmdDelivery::kBadBlockNum:
      return Rule::kCmdqBlock;
    case CmdDelivery::kBadOutPtr:
      return Rule::kCmdqOutPointer;
    case CmdDelivery::kBadInPtr:
      return Rule::kCmdqInPointer;
    case CmdDelivery::kInLength:
      return Rule::kCmdqInLength;
    case CmdDelivery::kOutLength:
      return Rule::kCmdqOutLength;
    case CmdDelivery::kReservedNotZero:
      return Rule::kCmdqReserved;
    case CmdDelivery::kBadType:
      return Rule::kCmdqType;
    case CmdDelivery::kOk:
    case CmdDelivery::kFwErr:
      break;
  }
  return Rule::kCount;
}

void validate_input(Firmware& fw, const Command& cmd) {
  if (cmd.uid != 0 || !fw.tracer().rules().on()) return;
  const std::vector<std::uint8_t>& fields = field_bits(cmd.opcode);
  const std::size_t len = std::min(fields.size(), cmd.in.size());
  std::size_t at = 0;
  while (at < len && (cmd.in[at] & ~fields[at]) == 0) ++at;
  if (at == len) return;
  // From the dword on that holds them.
  const std::size_t from = at & ~std::size_t{3};
  fw.tracer().broke(Rule::kCmdReserved, cmd.now, RuleObject::kCommand, cmd.seq, cmd.in.data() + from,
                    std::min<std::size_t>(cmd.in.size() - from, 16));
}

void validate_refused(Firmware& fw, const Command& cmd, const Opcode* op, Syndrome syndrome) {
  Rule rule = rule_of(syndrome);
  if (rule == Rule::kCount) return;
  if (rule == Rule::kNoObject) {
    if (look_for(fw.objects(), syndrome, number_of(cmd), Look::kWas))
      rule = Rule::kUseAfterDestroy;
    else if (fw.is_foreign(
                 [&](Firmware& of) { return look_for(of.objects(), syndrome, number_of(cmd), Look::kIs); }))
      rule = Rule::kForeignObject;
    else if (op != nullptr && std::strncmp(op->name, "CREATE_", 7) == 0)
      rule = Rule::kReference;
  }
  fw.tracer().broke(rule, cmd.now, RuleObject::kCommand, cmd.seq, cmd.in.data(),
                    std::min<std::size_t>(cmd.in.size(), 256));
}

std::string objects_left(Firmware& fw) {
  Objects& o = fw.objects();
  std::string out;
  const auto add = [&out](std::uint32_t n, const char* name) {
    if (n != 0) out += (out.empty() ? "" : ", ") + std::to_string(n) + " " + name;
  };
  add(o.mkeys.count(), "mkeys");
  add(o.eqs.count(), "EQs");
  add(o.cqs.count(), "CQs");
  add(o.srqs.count(), "SRQs");
  add(o.qps.count(), "QPs");
  add(o.rqs.count(), "RQs");
  add(o.tirs.count(), "TIRs");
  add(o.tises.count(), "TISes");
  add(o.rqts.count(), "RQTs");
  add(o.flow_tables.count(), "flow tables");
  add(o.flow_counters.count(), "flow counters");
  add(o.modify_headers.count(), "header rewrites");
  add(o.reformats.count(), "packet reformats");
  add(o.q_counters.count(), "counter sets");
  add(o.tds.count(), "transport domains");
  add(o.xrcds.count(), "XRC domains");
  add(o.users.table.count(), "user contexts");
  add(o.umems.count(), "UMEMs");
  add(o.pds.count(), "PDs");
  add(o.uars.count(), "UAR pages");
  return out;
}

}  // namespace hcasim::fw
