// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "prm/access_registers.h"
#include "wrong.h"

namespace hcasim::bare {
namespace {

using Raw = CommandQueue::Raw;

CommandResult run(Device& d, const Mailbox& in, std::size_t out = 16) { return d.cmd().exec(in, out); }

// A command that is right, but for what `spoil` does to its entry and mailboxes.
void spoiled(Device& d, const CommandQueue::Tamper& spoil) {
  // Long enough for mailboxes both ways.
  Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes + 600, 1);
  d.cmd().exec(in, prm::query_hca_cap_out::bytes, 10'000'000, spoil);
}

void power_on(Device& d, bool enable) {
  d.function_reset();
  d.cmd().start();
  if (enable) d.enable_hca().must();
}

// CREATE_CQ of 256 CQEs, right in all points.
struct CqMailbox {
  using In = prm::create_cq_in;
  using C = In::cq_context;
  explicit CqMailbox(Device& d, std::size_t listed = 4)
      : memory(d.memory().allocate(256 * 64)),
        dbr(d.memory().allocate(kPage)),
        in(prm::op::CREATE_CQ, In::bytes + listed * 8) {
    in.set<C::log_cq_size>(8).set<C::uar_page>(d.uar()).set<C::dbr_addr>(dbr.bus());
    in.set<C::c_eqn_or_apu_element>(d.comp_eq(0).eqn());
    for (std::size_t i = 0; i < listed; ++i) prm::set<In::pas>(in.data(), i, memory.bus(i * kPage));
  }
  Buffer memory, dbr;
  Mailbox in;
};

Mailbox give(const std::vector<std::uint64_t>& pages) {
  using In = prm::manage_pages_in;
  Mailbox in(prm::op::MANAGE_PAGES, In::bytes + pages.size() * 8, 1);
  in.set<In::input_num_entries>(static_cast<std::uint32_t>(pages.size()));
  for (std::size_t i = 0; i < pages.size(); ++i) prm::set<In::pas>(in.data(), i, pages[i]);
  return in;
}

void transition(Device& d, const std::function<void(Pair&)>& wrong) {
  PairOptions o;
  o.connect = false;
  Pair p(d, o);
  wrong(p);
}

void to_rtr_with(Device& d, const std::function<void(std::uint8_t*)>& fill, std::uint32_t optional = 0) {
  transition(d, [&](Pair& p) {
    p.a.to_init({}).must();
    p.a.modify(prm::op::INIT2RTR_QP, optional, [&](std::uint8_t* qpc) {
      prm::set<prm::qpc::mtu>(qpc, 5);
      prm::set<prm::qpc::log_msg_max>(qpc, 30);
      prm::set<prm::qpc::remote_qpn>(qpc, p.b.qpn());
      prm::set<prm::qpc::primary_address_path::vhca_port_num>(qpc, 1);
      prm::set<prm::qpc::primary_address_path::rlid>(qpc, d.lid());
      fill(qpc);
    });
  });
}

void key_with(Device& d, const std::function<void(Mailbox&)>& spoil) {
  Pd pd(d);
  const Buffer memory = d.memory().allocate(4 * kPage);
  Mailbox in = create_mkey_mailbox(Mr::of(pd, memory));
  spoil(in);
  run(d, in, prm::create_mkey_out::bytes);
}

}  // namespace

const std::vector<Wrong>& wrong_commands() {
  using Mkc = prm::create_mkey_in::memory_key_mkey_entry;
  static const auto* const list = new std::vector<Wrong>{
      // --- The command queue
      {"cmdq-address",
       [](Device& d) {
         const std::uint32_t low = d.function().read32(offsetof(prm::InitSeg, cmdq_addr_l_sz));
         d.function().write32(offsetof(prm::InitSeg, cmdq_addr_l_sz), (low & ~0xfffu) | 0x40);
       }},
      {"cmdq-doorbell-early",
       [](Device& d) {
         d.function_reset();
         d.cmd().ring(1);
       }},
      {"cmdq-slot-busy",
       [](Device& d) {
         Mailbox nop(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes);
         d.cmd().submit(nop, prm::query_adapter_out::bytes, {}, 3);
         d.cmd().ring(1 << 3);
         settle(d);
       }},
      {"cmdq-ownership", [](Device& d) { d.cmd().ring(1 << 5); }},
      {"cmdq-entry-type",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.entry->type = 6;
           r.sign();
         });
       }},
      {"cmdq-signature", [](Device& d) { spoiled(d, [](Raw& r) { r.entry->sig ^= 1; }); }},
      {"cmdq-input-length",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.entry->inlen = 4;
           r.sign();
         });
       }},
      {"cmdq-output-length",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.entry->outlen = 0x7fffffff;
           r.sign();
         });
       }},
      {"cmdq-input-pointer",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.entry->in_ptr = r.entry->in_ptr + 64;
           r.sign();
         });
       }},
      {"cmdq-output-pointer",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.entry->out_ptr = 0;
           r.sign();
         });
       }},
      {"cmdq-mailbox-token",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.in[0]->token ^= 1;
           r.sign();
         });
       }},
      {"cmdq-mailbox-order",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.in[1]->block_num = 7;
           r.sign();
         });
       }},
      {"cmdq-entry-reserved",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.entry->rsvd0[1] = 9;
           r.sign();
         });
       }},
      {"cmdq-mailbox-reserved",
       [](Device& d) {
         spoiled(d, [](Raw& r) {
           r.in[0]->rsvd0[17] = 9;
           r.sign();
         });
       }},
      {"cmdq-entry-changed",
       [](Device& d) {
         prm::CmdEntry* entry = nullptr;
         Mailbox in(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes);
         d.cmd().submit(in, prm::query_adapter_out::bytes, {}, 3, [&](Raw& r) { entry = r.entry; });
         d.machine().advance(100);
         entry->outlen = 16;  // the device took the command when it was rung
         settle(d);
       }},
      // --- Commands
      {"cmd-opcode", [](Device& d) { run(d, Mailbox(0xfe, 16)); }},
      {"cap-not-offered",
       [](Device& d) {  // the Ethernet link's, on InfiniBand
         run(d, Mailbox(prm::op::QUERY_VPORT_STATE, prm::query_vport_state_in::bytes));
       }},
      {"cmd-input-short", [](Device& d) { run(d, Mailbox(prm::op::CREATE_CQ, 16), 16); }},
      {"cmd-output-short",
       [](Device& d) { run(d, Mailbox(prm::op::QUERY_EQ, prm::query_eq_in::bytes), 16); }},
      {"access-before-enable",
       [](Device& d) {
         power_on(d, false);
         run(d, Mailbox(prm::op::QUERY_PAGES, prm::query_pages_in::bytes, 1));
       }},
      {"access-before-init",
       [](Device& d) {
         power_on(d, true);
         run(d, Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes));
       }},
      {"cmd-after-init", [](Device& d) { run(d, Mailbox(prm::op::SET_ISSI, prm::set_issi_in::bytes)); }},
      {"cmd-op-mod", [](Device& d) { run(d, Mailbox(prm::op::QUERY_PAGES, prm::query_pages_in::bytes, 9)); }},
      {"cmd-reserved-bits",
       [](Device& d) {
         Mailbox in(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes);
         in[9] = 0x80;
         run(d, in);
       }},
      {"cmd-function",
       [](Device& d) {
         Mailbox in(prm::op::QUERY_PAGES, prm::query_pages_in::bytes, 1);
         run(d, in.set<prm::query_pages_in::function_id>(7));
       }},
      {"devx-uid",
       [](Device& d) {
         Mailbox in(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes);
         prm::store32(in.data(), std::uint32_t{prm::op::ALLOC_PD} << 16 | 0x123);
         run(d, in);
       }},
      {"cap-set",
       [](Device& d) {
         power_on(d, true);
         run(d, Mailbox(prm::op::SET_HCA_CAP, prm::set_hca_cap_in::bytes, 0x3f << 1));
       }},
      {"cap-limit",
       [](Device& d) {
         CqMailbox cq(d);
         run(d, cq.in.set<CqMailbox::C::log_cq_size>(30));
       }},
      {"issi",
       [](Device& d) {
         power_on(d, true);
         Mailbox in(prm::op::SET_ISSI, prm::set_issi_in::bytes);
         run(d, in.set<prm::set_issi_in::current_issi>(9));
       }},
      {"teardown-profile", [](Device& d) { d.teardown_hca(9); }},
      {"init-pages",
       [](Device& d) {
         power_on(d, true);
         d.init_hca();
       }},
      {"page-list",
       [](Device& d) {
         Mailbox in = give({});
         run(d, in.set<prm::manage_pages_in::input_num_entries>(5));
       }},
      {"page-address", [](Device& d) { run(d, give({0x7000123})); }},
      {"page-given-twice",
       [](Device& d) {
         const Buffer page = d.memory().allocate(kPage);
         run(d, give({page.bus()}));
         run(d, give({page.bus()}));
       }},
      {"page-of-firmware-used",
       [](Device& d) {
         CqMailbox cq(d);
         run(d, give({cq.memory.bus(2 * kPage)}));
         run(d, cq.in);
       }},
      {"teardown-objects",
       [](Device& d) {
         CqMailbox cq(d);
         run(d, cq.in);
         d.cmd().use_events(false);
         d.teardown_hca();
       }},
      {"pages-not-taken-back",
       [](Device& d) {
         d.cmd().use_events(false);
         d.disable_hca();
       }},
      {"enable-twice",
       [](Device& d) {
         d.cmd().use_events(false);
         d.enable_hca();
       }},
      {"register-unknown",
       [](Device& d) { d.access_register(0x1111, false, std::vector<std::uint8_t>(16)); }},
      {"register-access",  // PVLC and the like can be read only
       [](Device& d) { d.access_register(prm::reg::kPvlc, true, std::vector<std::uint8_t>(64)); }},
      {"register-length", [](Device& d) { d.access_register(prm::reg::kPmtu, false, {}); }},
      // --- Objects
      {"object-unknown",
       [](Device& d) {
         Mailbox in(prm::op::DESTROY_CQ, prm::destroy_cq_in::bytes);
         run(d, in.set<prm::destroy_cq_in::cqn>(0x5555));
       }},
      {"use-after-destroy",
       [](Device& d) {
         Cq cq(d);
         cq.destroy().must();
         cq.query();
       }},
      {"destroy-busy",
       [](Device& d) {
         Pair p(d);
         p.acq.destroy();
       }},
      {"object-reference",
       [](Device& d) {
         CqMailbox cq(d);
         run(d, cq.in.set<CqMailbox::C::c_eqn_or_apu_element>(99));
       }},
      {"queue-pages",
       [](Device& d) {
         CqMailbox cq(d, 3);
         run(d, cq.in);
       }},
      {"dbr-alignment",
       [](Device& d) {
         CqMailbox cq(d);
         run(d, cq.in.set<CqMailbox::C::dbr_addr>(cq.dbr.bus() + 4));
       }},
      {"msix-vector",
       [](Device& d) {
         using In = prm::create_eq_in;
         const Buffer ring = d.memory().allocate(kPage);
         Mailbox in(prm::op::CREATE_EQ, In::bytes + 8);
         in.set<In::eq_context_entry::log_eq_size>(6).set<In::eq_context_entry::uar_page>(d.uar());
         prm::set<In::pas>(in.data(), 0, ring.bus());
         run(d, in.set<In::eq_context_entry::intr>(200));
       }},
      {"cq-layout",
       [](Device& d) {
         CqMailbox cq(d);
         run(d, cq.in.set<CqMailbox::C::cqe_sz>(7));
       }},
      {"qp-state-transition", [](Device& d) { transition(d, [](Pair& p) { p.a.to_rts({}); }); }},
      {"qp-optional-mask",
       [](Device& d) {
         to_rtr_with(
             d, [](std::uint8_t*) {}, 1u << 31);
       }},
      {"qp-mtu",
       [](Device& d) { to_rtr_with(d, [](std::uint8_t* qpc) { prm::set<prm::qpc::mtu>(qpc, 7); }); }},
      {"qp-path",
       [](Device& d) {
         transition(d, [](Pair& p) {
           QpAttr a;
           a.pkey_index = 999;
           p.a.to_init(a);
         });
       }},
      {"qp-read-depth",
       [](Device& d) { to_rtr_with(d, [](std::uint8_t* qpc) { prm::set<prm::qpc::log_rra_max>(qpc, 7); }); }},
      {"qp-message-max",
       [](Device& d) {
         to_rtr_with(d, [](std::uint8_t* qpc) { prm::set<prm::qpc::log_msg_max>(qpc, 31); });
       }},
      {"psn-range",
       [](Device& d) {
         transition(d, [](Pair& p) {
           p.a.to_init({}).must();
           QpAttr a;
           a.remote_qpn = p.b.qpn();
           p.a.to_rtr(a).must();
           // As a driver that keeps a PSN in 32 bits stores it.
           p.a.modify(prm::op::RTR2RTS_QP, 0, [](std::uint8_t* qpc) {
             prm::store32(qpc + prm::qpc::next_send_psn::bit_off / 32 * 4, 0x01000002);
           });
         });
       },
       {"cmd-reserved-bits"}},
      {"mkey-layout", [](Device& d) { key_with(d, [](Mailbox& in) { in.set<Mkc::log_page_size>(63); }); }},
      {"mkey-list",
       [](Device& d) {
         key_with(d, [](Mailbox& in) { in.set<prm::create_mkey_in::translations_octword_actual_size>(100); });
       }},
      {"mkey-pages",
       [](Device& d) {
         Pd pd(d);
         const Buffer memory = d.memory().allocate(4 * kPage);
         Mailbox in = create_mkey_mailbox(Mr::of(pd, memory));
         in[prm::create_mkey_in::klm_pas_mtt::bit_off / 8 + 6] |= 8;  // of the first page's address, bit 11
         const CommandResult made = run(d, in, prm::create_mkey_out::bytes);
         Mailbox out(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes);
         out.set<prm::destroy_mkey_in::mkey_index>(made.get<prm::create_mkey_out::mkey_index>());
         run(d, out);
       }},
      {"mkey-wrap",
       [](Device& d) { key_with(d, [](Mailbox& in) { in.set<Mkc::start_addr>(~0ull - 0xfff); }); }},
      {"multicast-gid",
       [](Device& d) {
         Pair p(d);
         using In = prm::attach_to_mcg_in;
         Mailbox in(prm::op::ATTACH_TO_MCG, In::bytes);
         in.set<In::qpn>(p.a.qpn());
         in[In::multicast_gid::bit_off / 8] = 0xfe;  // link-local, not multicast
         run(d, in);
       }},
      {"multicast-attached",
       [](Device& d) {
         Pair p(d);
         using In = prm::detach_from_mcg_in;
         Mailbox in(prm::op::DETACH_FROM_MCG, In::bytes);
         in.set<In::qpn>(p.a.qpn());
         in[In::multicast_gid::bit_off / 8] = 0xff;
         run(d, in);
       }},
      {"psv-count",
       [](Device& d) {
         Pd pd(d);
         using In = prm::create_psv_in;
         Mailbox in(prm::op::CREATE_PSV, In::bytes);
         run(d, in.set<In::num_psv>(7).set<In::pd>(pd.pdn()), prm::create_psv_out::bytes);
       }},
  };
  return *list;
}

}  // namespace hcasim::bare
