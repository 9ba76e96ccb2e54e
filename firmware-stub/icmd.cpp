// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/icmd.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

using prm::IcmdStatus;
using prm::RegisterStatus;

namespace {

constexpr std::size_t kRegisterTlv = prm::operation_tlv::bytes,
                      kData = kRegisterTlv + prm::register_tlv::bytes;
constexpr std::size_t kInHeader = prm::access_register_in::register_data::bit_off / 8;
constexpr std::size_t kOutHeader = prm::access_register_out::register_data::bit_off / 8;
enum : std::uint16_t { kOpModWrite = 0, kOpModRead = 1 };

RegisterStatus status_in_tlv(Syndrome s) {
  switch (s) {
    case Syndrome::kOk:
      return RegisterStatus::kOk;
    case Syndrome::kRegister:
      return RegisterStatus::kNoRegister;
    case Syndrome::kRegisterRead:
      return RegisterStatus::kMethod;
    default:
      break;
  }
  switch (status_of(s)) {
    case prm::CmdStatus::kBadParam:
      return RegisterStatus::kBadParam;
    case prm::CmdStatus::kBadInpLen:
    case prm::CmdStatus::kBadOutpLen:
      return RegisterStatus::kTooShort;
    case prm::CmdStatus::kResBusy:
    case prm::CmdStatus::kNoRes:
    case prm::CmdStatus::kBadSysState:
      return RegisterStatus::kNoResource;
    default:
      return RegisterStatus::kInternal;
  }
}

}  // namespace

Icmd::Icmd(const sc_core::sc_module_name& name, Firmware& fw)
    : sc_module(name),
      fw_(fw),
      due_(
          "due", [this](Time t, std::uint32_t& serial) { execute(t, serial); }, fw.function().health()) {}

std::optional<std::uint32_t> Icmd::read(std::uint32_t address) const {
  if (address == kControl) return prm::load32(control_.data());
  if (address == kSize) return kMailboxBytes;
  if (address >= kMailbox && address - kMailbox < kMailboxBytes)
    return prm::load32(mailbox_.data() + (address - kMailbox));
  return {};
}

bool Icmd::write(std::uint32_t address, std::uint32_t value) {
  if (address == kControl) {
    if (busy()) return true;
    prm::store32(control_.data(), value);
    if (busy()) start();
    return true;
  }
  if (address < kMailbox || address - kMailbox >= kMailboxBytes) return false;
  if (!busy()) prm::store32(mailbox_.data() + (address - kMailbox), value);
  return true;
}

void Icmd::start() {
  ++commands_;
  cmd_ = Command{};
  go_on();
}

void Icmd::go_on() {
  const Profile& profile = fw_.device().profile();
  due_.push(fw_.cmdq().occupy(sim_now() + profile.pcie.mmio_latency, profile.firmware.command), ++serial_);
}

void Icmd::resume() {
  if (!stalled_) return;
  stalled_ = false;
  go_on();
}

void Icmd::host_answered() {
  if (!waiting_) return;
  waiting_ = false;
  go_on();
}

const Icmd::Opcode Icmd::kOpcodes[] = {
    {prm::kIcmdGetFwInfo, &Icmd::get_fw_info},
    {prm::kIcmdQueryCap, &Icmd::query_cap},
    {prm::kIcmdAccessRegister, &Icmd::access_register},
};

void Icmd::execute(Time t, std::uint32_t serial) {
  if (serial != serial_ || !busy()) return;
  if (fw_.health().stalled()) {
    stalled_ = true;
    return;
  }
  if (fw_.health().is_fatal()) return done(IcmdStatus::kOperational);
  const std::uint32_t opcode = prm::get<prm::icmd_control::opcode>(control_.data());
  const auto* row = std::find_if(std::begin(kOpcodes), std::end(kOpcodes),
                                 [opcode](const Opcode& o) { return o.opcode == opcode; });
  if (row == std::end(kOpcodes)) return done(IcmdStatus::kBadOpcode);
  // Data in host memory: not offered.
  if (prm::get<prm::icmd_control::ext_mailbox>(control_.data()) != 0) return done(IcmdStatus::kBadParam);
  (this->*row->run)(t);
}

void Icmd::get_fw_info(Time) {
  using info = prm::icmd_fw_info;
  const Generation& g = *fw_.options().generation;
  const FirmwareVersion& version = fw_.image().running();
  std::memset(mailbox_.data(), 0, info::bytes);
  prm::set<info::major>(mailbox_.data(), version.major);
  prm::set<info::minor>(mailbox_.data(), version.minor);
  prm::set<info::subminor>(mailbox_.data(), version.subminor);
  std::memcpy(prm::ptr<info::psid>(mailbox_.data()), g.psid,
              std::min<std::size_t>(std::strlen(g.psid), info::psid::bytes));
  done(IcmdStatus::kOk);
}

void Icmd::query_cap(Time) {
  using cap = prm::icmd_query_cap;
  std::memset(mailbox_.data(), 0, cap::bytes);
  prm::set<cap::all_registers>(mailbox_.data(), 1);
  prm::set<cap::pcam_reg>(mailbox_.data(), 1);
  prm::set<cap::mcam_reg>(mailbox_.data(), 1);
  done(IcmdStatus::kOk);
}

void Icmd::access_register(Time t) {
  if (cmd_.opcode == 0) {  // not one that has waited
    const RegisterStatus status = read_tlvs();
    if (status != RegisterStatus::kOk) return reply(status);
    cmd_.seq = fw_.cmdq().new_seq();
    fw_.tracer().record_blob(traces::Point::kCmdStart, t, cmd_.slot, cmd_.seq,
                             cmd_.opcode | std::uint64_t{cmd_.op_mod} << 16, cmd_.in_len, cmd_.in.data(),
                             cmd_.in.size());
  }
  cmd_.now = t;
  const Syndrome syndrome = run_access();
  if (syndrome == Syndrome::kWaitHost) {
    waiting_ = true;
    return;
  }
  fw_.tracer().record_blob(traces::Point::kCmdDone, t, cmd_.slot, cmd_.seq,
                           cmd_.opcode | std::uint64_t{static_cast<std::uint8_t>(status_of(syndrome))} << 16,
                           static_cast<std::uint32_t>(syndrome) | std::uint64_t{cmd_.out_len} << 32,
                           cmd_.out.data(), cmd_.out.size());
  answer(status_in_tlv(syndrome));
}

// What lies in the mailbox, as a command.
RegisterStatus Icmd::read_tlvs() {
  using op = prm::operation_tlv;
  using in = prm::access_register_in;
  const std::uint8_t* tlv = mailbox_.data();
  const std::uint8_t* reg = tlv + kRegisterTlv;
  if (prm::get<op::type>(tlv) != prm::kTlvOperation || prm::get<op::len>(tlv) * 4 != op::bytes ||
      prm::get<prm::register_tlv::type>(reg) != prm::kTlvRegister)
    return RegisterStatus::kUnknownTlv;
  if (prm::get<op::tlv_class>(tlv) != prm::kTlvClassRegister) return RegisterStatus::kClass;
  const std::uint32_t method = prm::get<op::method>(tlv);
  if (method != prm::kTlvRead && method != prm::kTlvWrite) return RegisterStatus::kMethod;
  const std::size_t len = prm::get<prm::register_tlv::len>(reg) * std::size_t{4};
  if (len < prm::register_tlv::bytes || len > kMailboxBytes - kRegisterTlv) return RegisterStatus::kBadParam;
  const std::size_t data = len - prm::register_tlv::bytes;

  cmd_.slot = Command::kIcmdSlot;
  cmd_.opcode = prm::op::ACCESS_REG;
  cmd_.op_mod = method == prm::kTlvRead ? kOpModRead : kOpModWrite;
  cmd_.in_len = kInHeader + data;
  cmd_.in.assign(std::max<std::size_t>(cmd_.in_len, in::bytes), 0);
  prm::set<in::opcode>(cmd_.in.data(), cmd_.opcode);
  prm::set<in::op_mod>(cmd_.in.data(), cmd_.op_mod);
  prm::set<in::register_id>(cmd_.in.data(), prm::get<op::register_id>(tlv));
  std::memcpy(cmd_.in.data() + kInHeader, mailbox_.data() + kData, data);
  cmd_.out_len = kOutHeader + data;
  return RegisterStatus::kOk;
}

bool Icmd::sound() { return read_tlvs() == RegisterStatus::kOk; }

Syndrome Icmd::run_access() {
  try {
    cmd_.out.assign(std::max<std::size_t>(cmd_.out_len, prm::access_register_out::bytes), 0);
    return fw::access_register(fw_, cmd_);
  } catch (const std::bad_alloc&) {
    return Syndrome::kNoMemory;
  } catch (const std::exception& e) {
    fw_.device().model_fault("firmware", e.what());
    return Syndrome::kFirmwareFatal;
  }
}

// The register's data go back even if it has refused: some tell there why.
void Icmd::answer(RegisterStatus status) {
  if (status == RegisterStatus::kOk || status == RegisterStatus::kBadParam ||
      status == RegisterStatus::kNoResource)
    std::memcpy(mailbox_.data() + kData, cmd_.out.data() + kOutHeader, cmd_.out_len - kOutHeader);
  reply(status);
}

// Status alone.
void Icmd::reply(RegisterStatus status) {
  using op = prm::operation_tlv;
  prm::set<op::response>(mailbox_.data(), 1);
  prm::set<op::status>(mailbox_.data(), static_cast<std::uint32_t>(status));
  failed_ += status != RegisterStatus::kOk ? 1 : 0;
  done(IcmdStatus::kOk);
}

void Icmd::done(IcmdStatus status) {
  failed_ += status != IcmdStatus::kOk ? 1 : 0;
  prm::set<prm::icmd_control::status>(control_.data(), static_cast<std::uint32_t>(status));
  prm::set<prm::icmd_control::busy>(control_.data(), 0);
  cmd_ = Command{};
}

}  // namespace hcasim::fw
