// SPDX-License-Identifier: BSD-3-Clause
// Who may issue a command, and which objects it names: the last columns of opcodes.def. A user context (DevX,
// CREATE_UCTX) sends commands with its number (uid) and may only name objects that are its own or shared.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_ACCESS_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_ACCESS_H

#include <cstdint>
#include <vector>

#include "firmware-stub/command.h"
#include "firmware-stub/objects/objects.h"

namespace hcasim::fw {

// kDriver: only the driver itself (uid 0 or kSharedUid). kContexts: user contexts too.
enum class Issuer : std::uint8_t { kDriver, kContexts };

// An object that a command names. Zero always means "none", and is nobody's.
struct Named {
  ObjType type;
  bool use;  // only referred to: a shared object will do. Otherwise the command changes or destroys it.
  std::uint32_t (*number)(const Command&);
  bool (*applies)(const Command&) = nullptr;  // null: always
};

// A right (cmd_hca_cap.uctx_cap) that the context must have been made with.
struct Right {
  std::uint32_t cap = 0;
  bool (*applies)(const Command&) = nullptr;  // null: always
};

// Checks what Named cannot say, for example lists.
using AccessCheck = Syndrome (*)(Firmware&, const Command&);

// Made of Issuer and, for kContexts, any number of Named, lists of Named, a Right and an AccessCheck. There
// is no default: an opcode's row without this column does not compile.
class Users {
 public:
  template <class... What>
  explicit Users(Issuer issuer, const What&... what) : contexts_(issuer == Issuer::kContexts) {
    (add(what), ...);
  }

  bool contexts() const { return contexts_; }
  const std::vector<Named>& named() const { return named_; }
  const Right& right() const { return right_; }
  AccessCheck check() const { return check_; }

 private:
  void add(const Named& n) { named_.push_back(n); }
  void add(const std::vector<Named>& list) { named_.insert(named_.end(), list.begin(), list.end()); }
  void add(const Right& right) { right_ = right; }
  void add(AccessCheck check) { check_ = check; }

  bool contexts_;
  std::vector<Named> named_;
  Right right_;
  AccessCheck check_ = nullptr;
};

// Whether a command with a uid that is neither 0 nor kSharedUid may be executed: the context exists, the
// opcode is one for user contexts, and every object that the command names is the context's own (or shared,
// where it is only referred to). An object that does not exist at all is left to the command's handler.
Syndrome check_access(Firmware& fw, const Command& cmd, const Users& users);

// ---- For the rows ----

template <class F>
std::uint32_t number_of(const Command& cmd) {
  return static_cast<std::uint32_t>(cmd.get<F>());
}
template <class F>
Named own(ObjType type) {
  return {type, false, number_of<F>};
}
template <class F>
Named use(ObjType type, bool (*applies)(const Command&) = nullptr) {
  return {type, true, number_of<F>, applies};
}

// Transition commands all name their QP, and may name a Q counter. In: the input structure, prm::..._in.
template <class In>
std::vector<Named> named_by_transition() {
  return {own<typename In::qpn>(ObjType::kQp), use<typename In::qpc::counter_set_id>(ObjType::kQCounter)};
}

std::vector<Named> named_by_create_qp();
std::vector<Named> named_by_create_dct();
std::vector<Named> named_by_create_xrc_srq();
std::vector<Named> named_by_create_sq();
std::vector<Named> named_by_create_tis();
std::vector<Named> named_by_create_rq();
std::vector<Named> named_by_create_tir();
std::vector<Named> named_by_create_flow_table();
std::vector<Named> named_by_modify_flow_table();
bool leads_to_tis(const Command&);  // CREATE_SQ: sends frames of the user's making
Syndrome check_create_rqt(Firmware&, const Command&);
Syndrome check_modify_rqt(Firmware&, const Command&);
Syndrome check_create_flow_table(Firmware&, const Command&);
Syndrome check_query_flow_counter(Firmware&, const Command&);

}  // namespace hcasim::fw
#endif
