// SPDX-License-Identifier: BSD-3-Clause
// Contexts of actions that flow entries refer to, and counters.
#include <algorithm>

#include "driver/bare/eth.h"

namespace hcasim::bare {

namespace {

enum : unsigned { kSet = 1, kAdd = 2, kCopy = 3 };

// The object whose number is in `made`, the result of its creation; `opcode` is the command that destroys it.
template <class Id>
EthObject object(Device& device, const CommandResult& made, std::uint16_t opcode, std::size_t bytes) {
  return {device, made.get<Id>(), [&device, id = made.get<Id>(), opcode, bytes] {
            Mailbox destroy(opcode, bytes);
            prm::store32(destroy.data() + 8, id);  // all these commands have the number at this offset
            return device.exec(destroy);
          }};
}

}  // namespace

FieldItem set_field(std::uint32_t field, std::uint32_t value, unsigned offset, unsigned length) {
  using set = prm::set_action_in;
  FieldItem item{};
  prm::set<set::action_type>(item.data(), kSet);
  prm::set<set::field>(item.data(), field);
  prm::set<set::offset>(item.data(), offset);
  prm::set<set::length>(item.data(), length);
  prm::set<set::data>(item.data(), value);
  return item;
}

FieldItem add_field(std::uint32_t field, std::uint32_t value) {
  using add = prm::add_action_in;
  FieldItem item{};
  prm::set<add::action_type>(item.data(), kAdd);
  prm::set<add::field>(item.data(), field);
  prm::set<add::data>(item.data(), value);
  return item;
}

FieldItem copy_field(std::uint32_t from, std::uint32_t to, unsigned length, unsigned from_offset,
                     unsigned to_offset) {
  using copy = prm::copy_action_in;
  FieldItem item{};
  prm::set<copy::action_type>(item.data(), kCopy);
  prm::set<copy::src_field>(item.data(), from);
  prm::set<copy::src_offset>(item.data(), from_offset);
  prm::set<copy::length>(item.data(), length);
  prm::set<copy::dst_field>(item.data(), to);
  prm::set<copy::dst_offset>(item.data(), to_offset);
  return item;
}

CommandResult try_modify_header(Device& device, const std::vector<FieldItem>& items, unsigned type) {
  using In = prm::alloc_modify_header_context_in;
  constexpr std::size_t kList = In::actions::bit_off / 8;
  Mailbox in(prm::op::ALLOC_MODIFY_HEADER_CONTEXT, kList + items.size() * sizeof(FieldItem));
  in.set<In::table_type>(type).set<In::num_of_actions>(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    std::copy(items[i].begin(), items[i].end(), in.data() + kList + i * sizeof(FieldItem));
  return device.exec(in);
}

EthObject make_modify_header(Device& device, const std::vector<FieldItem>& items, unsigned type) {
  return object<prm::alloc_modify_header_context_out::modify_header_id>(
      device, try_modify_header(device, items, type).must(), prm::op::DEALLOC_MODIFY_HEADER_CONTEXT,
      prm::dealloc_modify_header_context_in::bytes);
}

CommandResult try_reformat(Device& device, const Reformat& r) {
  using In = prm::alloc_packet_reformat_context_in;
  using C = In::packet_reformat_context;
  constexpr std::size_t kData = C::reformat_data::bit_off / 8;
  Mailbox in(prm::op::ALLOC_PACKET_REFORMAT_CONTEXT, std::max<std::size_t>(In::bytes, kData + r.data.size()));
  in.set<C::reformat_type>(r.type).set<C::reformat_param_0>(r.anchor).set<C::reformat_param_1>(r.offset);
  in.set<C::reformat_data_size>(r.size != 0 ? r.size : r.data.size());
  std::copy(r.data.begin(), r.data.end(), in.data() + kData);
  return device.exec(in);
}

EthObject make_reformat(Device& device, const Reformat& r) {
  return object<prm::alloc_packet_reformat_context_out::packet_reformat_id>(
      device, try_reformat(device, r).must(), prm::op::DEALLOC_PACKET_REFORMAT_CONTEXT,
      prm::dealloc_packet_reformat_context_in::bytes);
}

EthObject make_flow_counter(Device& device) {
  Mailbox in(prm::op::ALLOC_FLOW_COUNTER, prm::alloc_flow_counter_in::bytes);
  return object<prm::alloc_flow_counter_out::flow_counter_id>(
      device, device.exec(in).must(), prm::op::DEALLOC_FLOW_COUNTER, prm::dealloc_flow_counter_in::bytes);
}

Counted query_flow_counter(Device& device, std::uint32_t counter) {
  using In = prm::query_flow_counter_in;
  using Out = prm::query_flow_counter_out;
  Mailbox in(prm::op::QUERY_FLOW_COUNTER, In::bytes);
  in.set<In::flow_counter_id>(counter);
  const CommandResult r = device.exec(in, Out::bytes + prm::traffic_counter::bytes).must();
  const std::uint8_t* p = r.out.data() + Out::flow_statistics::bit_off / 8;
  return {prm::get<prm::traffic_counter::packets>(p), prm::get<prm::traffic_counter::octets>(p)};
}

}  // namespace hcasim::bare
