// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/command.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace hcasim::bare {

namespace {

constexpr std::size_t kBlockStride = 1024;  // blocks are aligned to it
constexpr std::size_t kInline = sizeof(prm::CmdEntry::in);

std::size_t blocks_of(std::size_t len) {
  return len <= kInline ? 0
                        : (len - kInline + sizeof(prm::CmdMailbox::data) - 1) / sizeof(prm::CmdMailbox::data);
}

std::uint8_t xor_of(const void* p, std::size_t len) {
  std::uint8_t x = 0;
  for (std::size_t i = 0; i < len; ++i)
    x = static_cast<std::uint8_t>(x ^ static_cast<const std::uint8_t*>(p)[i]);
  return x;
}

}  // namespace

std::string CommandResult::text() const {
  char buf[192];
  if (!done) {
    std::snprintf(buf, sizeof buf, "%s: no answer", prm::opcode_name(opcode).c_str());
  } else {
    const char* d = prm::cmd_delivery_name(delivery);
    const char* s = prm::cmd_status_name(status);
    std::snprintf(buf, sizeof buf, "%s: delivery %s, status %s (%#x), syndrome %#x",
                  prm::opcode_name(opcode).c_str(), d ? d : "?", s ? s : "?", static_cast<unsigned>(status),
                  syndrome);
  }
  return buf;
}

const CommandResult& CommandResult::must() const {
  if (!ok()) throw BareError(text());
  return *this;
}

void CommandQueue::Raw::sign() const {
  for (const auto* chain : {&in, &out}) {
    for (prm::CmdMailbox* b : *chain) {
      constexpr std::size_t from = offsetof(prm::CmdMailbox, rsvd0);
      b->ctrl_sig = b->sig = 0;
      b->ctrl_sig = static_cast<std::uint8_t>(~xor_of(b->rsvd0, offsetof(prm::CmdMailbox, sig) - from));
      b->sig = static_cast<std::uint8_t>(~xor_of(b, sizeof *b));
    }
  }
  entry->sig = 0;
  entry->sig = static_cast<std::uint8_t>(~xor_of(entry, sizeof *entry));
}

CommandQueue::CommandQueue(Function& function)
    : function_(function), queue_(function.machine().memory().allocate(kPage)) {}

CommandQueue::~CommandQueue() = default;

void CommandQueue::start() {
  Machine& m = function_.machine();
  auto initialized = [&] {
    return (function_.read32(offsetof(prm::InitSeg, initializing)) & prm::InitSeg::kInitializing) == 0;
  };
  for (int i = 0; !initialized(); ++i) {
    if (i == 12000) throw BareError("firmware stays in pre-initializing state");
    m.advance(10'000'000);
  }
  const std::uint32_t rev = function_.read32(offsetof(prm::InitSeg, cmdif_rev_fw_sub)) >> 16;
  if (rev != prm::InitSeg::kCmdifRev) throw BareError("unsupported command interface revision");
  const std::uint32_t sizes = function_.read32(offsetof(prm::InitSeg, cmdq_addr_l_sz)) & 0xff;
  log_size_ = sizes >> 4;
  log_stride_ = sizes & 0xf;
  if (log_size_ > 5 || log_stride_ < 6 || log_size_ + log_stride_ > 12)
    throw BareError("bad command queue size");
  std::memset(queue_.data(), 0, queue_.size());
  const std::uint64_t bus = queue_.bus();
  function_.write32(offsetof(prm::InitSeg, cmdq_addr_h), static_cast<std::uint32_t>(bus >> 32));
  function_.write32(offsetof(prm::InitSeg, cmdq_addr_l_sz), static_cast<std::uint32_t>(bus));
  for (int i = 0; !initialized(); ++i) {
    if (i == 200) throw BareError("firmware stays in initializing state");
    m.advance(10'000'000);
  }
  if ((function_.read32(offsetof(prm::InitSeg, cmdq_addr_l_sz)) & 0xff) != sizes)
    throw BareError("command queue sizes changed with the address");
}

void CommandQueue::stop() {
  events_ = false;
  for (Slot& s : slots_) s = Slot{};
}

int CommandQueue::submit(const Mailbox& in, std::size_t out_len, Done done, int slot, const Tamper& tamper,
                         bool ring_it) {
  if (slot < 0) {
    // The last slot is reserved for MANAGE_PAGES.
    for (int i = 0; i + 1 < static_cast<int>(slots()); ++i) {
      if (!slots_[static_cast<std::size_t>(i)].busy) {
        slot = i;
        break;
      }
    }
    if (slot < 0) throw BareError("no free command slot");
  }
  Slot& s = slots_.at(static_cast<std::size_t>(slot));
  if (s.busy) throw BareError("command slot is busy");
  s.busy = true;
  s.opcode = in.size() >= 8 ? in.opcode() : 0;
  s.out_len = out_len;
  s.done = std::move(done);
  s.in_blocks = blocks_of(in.size());
  s.out_blocks = blocks_of(out_len);
  // One block more than needed on each chain, as in the kernel's cached chains: the device must not read it.
  const std::size_t in_chain = s.in_blocks ? s.in_blocks + 1 : 0,
                    out_chain = s.out_blocks ? s.out_blocks + 1 : 0;
  s.boxes = Buffer();
  if (in_chain + out_chain)
    s.boxes = function_.machine().memory().allocate((in_chain + out_chain) * kBlockStride);
  if (++token_ == 0) token_ = 1;

  Raw raw;
  raw.entry = entry(slot);
  std::memset(static_cast<void*>(raw.entry), 0, sizeof(prm::CmdEntry));
  auto chain = [&](std::size_t first, std::size_t total, std::size_t used, std::vector<prm::CmdMailbox*>& box,
                   std::vector<std::uint64_t>& bus) {
    for (std::size_t i = 0; i < total; ++i) {
      auto* b = reinterpret_cast<prm::CmdMailbox*>(s.boxes.data() + (first + i) * kBlockStride);
      b->token = i < used ? token_ : static_cast<std::uint8_t>(token_ ^ 0x5a);
      b->block_num = static_cast<std::uint32_t>(i);
      b->next = i + 1 < total ? s.boxes.bus((first + i + 1) * kBlockStride) : 0;
      box.push_back(b);
      bus.push_back(s.boxes.bus((first + i) * kBlockStride));
    }
  };
  chain(0, in_chain, s.in_blocks, raw.in, raw.in_bus);
  chain(in_chain, out_chain, s.out_blocks, raw.out, raw.out_bus);

  prm::CmdEntry& e = *raw.entry;
  e.type = prm::CmdEntry::kPci;
  e.inlen = static_cast<std::uint32_t>(in.size());
  e.outlen = static_cast<std::uint32_t>(out_len);
  std::memcpy(e.in, in.data(), std::min(in.size(), kInline));
  for (std::size_t off = kInline, i = 0; off < in.size(); off += sizeof raw.in[0]->data, ++i)
    std::memcpy(raw.in[i]->data, in.data() + off, std::min(in.size() - off, sizeof raw.in[0]->data));
  e.in_ptr = in_chain ? raw.in_bus[0] : 0;
  e.out_ptr = out_chain ? raw.out_bus[0] : 0;
  e.token = token_;
  e.status_own = prm::CmdEntry::kOwnerHw;
  raw.sign();
  if (tamper) tamper(raw);
  if (ring_it) ring(1u << slot);
  return slot;
}

void CommandQueue::ring(std::uint32_t vector) {
  function_.write32(offsetof(prm::InitSeg, cmd_dbell), vector);
}

void CommandQueue::finish(int slot) {
  Slot& s = slots_[static_cast<std::size_t>(slot)];
  const prm::CmdEntry& e = *entry(slot);
  CommandResult r;
  r.done = true;
  r.opcode = s.opcode;
  r.delivery = static_cast<CmdDelivery>(e.status_own >> 1);
  r.out.resize(std::max<std::size_t>(s.out_len, kInline));
  std::memcpy(r.out.data(), e.out, kInline);
  const std::size_t first = s.in_blocks ? s.in_blocks + 1 : 0;
  for (std::size_t off = kInline, i = 0; off < s.out_len; off += sizeof(prm::CmdMailbox::data), ++i) {
    auto* b = reinterpret_cast<const prm::CmdMailbox*>(s.boxes.data() + (first + i) * kBlockStride);
    std::memcpy(r.out.data() + off, b->data, std::min(s.out_len - off, sizeof b->data));
  }
  r.status = static_cast<CmdStatus>(r.out[0]);
  r.syndrome = prm::load32(r.out.data() + 4);
  Done done = std::move(s.done);
  s = Slot{};
  if (done) done(r);
}

void CommandQueue::poll() {
  for (int i = 0; i < static_cast<int>(slots()); ++i) {
    if (slots_[static_cast<std::size_t>(i)].busy && (entry(i)->status_own & prm::CmdEntry::kOwnerHw) == 0)
      finish(i);
  }
}

void CommandQueue::complete(std::uint32_t vector) {
  for (int i = 0; i < static_cast<int>(slots()); ++i) {
    if (!(vector >> i & 1) || !slots_[static_cast<std::size_t>(i)].busy) continue;
    if (entry(i)->status_own & prm::CmdEntry::kOwnerHw)
      throw BareError("command event for a slot that the device still owns");
    finish(i);
  }
}

void CommandQueue::abandon(int slot) { slots_.at(static_cast<std::size_t>(slot)) = Slot{}; }

unsigned CommandQueue::in_flight() const {
  return static_cast<unsigned>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.busy; }));
}

CommandResult CommandQueue::exec(const Mailbox& in, std::size_t out_len, std::int64_t timeout,
                                 const Tamper& tamper) {
  CommandResult result;
  result.opcode = in.opcode();
  bool done = false;
  const int slot = submit(
      in, out_len,
      [&](const CommandResult& r) {
        result = r;
        done = true;
      },
      -1, tamper);
  const bool polled = !events_;
  try {
    function_.machine().run_until(
        [&] {
          if (polled && !done) poll();
          return done;
        },
        timeout);
  } catch (...) {
    if (!done) abandon(slot);  // `done` and `result` go out of scope
    throw;
  }
  if (!done) abandon(slot);
  if (observer_) observer_(in, result);
  return result;
}

}  // namespace hcasim::bare
