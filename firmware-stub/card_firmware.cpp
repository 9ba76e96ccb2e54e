// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/card_firmware.h"

#include <string>

namespace hcasim::fw {

namespace {

// A MAC and the EUI-64 made of it, as cards have them: 0c:..:aa:bb:cc:dd is 0c..aa03 00bbccdd (or any two
// bytes in the middle, on the way back).
std::uint64_t guid_of(std::uint64_t mac) { return mac >> 24 << 40 | 0x0300000000ull | (mac & 0xffffff); }
std::uint64_t mac_of(std::uint64_t guid) {
  const std::uint64_t mac = guid >> 40 << 24 | (guid & 0xffffff);
  return mac & ~(std::uint64_t{1} << 40);  // never a group address
}

Options complete(Options o, const Generation& generation, unsigned hca_number, bool has_images) {
  o.generation = &generation;
  o.migration = has_images && generation.migration() && o.vfs != 0;
  if (o.device_id == 0) o.device_id = generation.device_id;
  // 00:02:c9 is the vendor's OUI, the rest distinguishes cards.
  if (o.node_guid == 0) {
    o.node_guid = o.mac != 0 ? guid_of(o.mac) : 0x0002c90300a00000ull + (std::uint64_t{hca_number} << 8);
  }
  if (o.mac == 0) o.mac = mac_of(o.node_guid);
  if (o.card_guid == 0) o.card_guid = o.node_guid;
  return o;
}

// Functions have addresses of their own, counted up from the card's. A virtual one has a smaller BAR, with
// fewer UAR pages and vectors, and no device memory in it; the physical function's pages are enough for it. A
// sub-function has a window of such a size, and the physical function's vectors.
Options of_function(Options o, FunctionId f) {
  if (f != 0 && f <= o.vfs + o.sfs) {
    o.vf = true;
    o.sf = f > o.vfs;
    o.page_requests = false;
    o.num_uars = kVfUars;
    if (!o.sf) o.msix_vectors = kVfVectors;
    o.num_eqs = kVfEqs;
  }
  if (o.vfs + o.sfs != 0 || o.ports != 1)
    o.vhca_id = static_cast<std::uint16_t>(o.port * (o.vfs + o.sfs + 1) + f);
  o.node_guid += f;
  if (o.vf) {
    o.mac = 0;  // its manager gives it one, or its driver makes one
    return o;
  }
  o.mac = (o.mac & ~std::uint64_t{0xffffff}) | ((o.mac + f) & 0xffffff);
  return o;
}

}  // namespace

CardFirmware::CardFirmware(const sc_core::sc_module_name& name, Device& device, const Options& options,
                           FunctionImages* images)
    : sc_module(name),
      options_(complete(options, *device.profile().generation, device.tracer().hca(), images != nullptr)),
      port_(device.profile().port,
            {device.port(), device.vports(), device.traffic_classes(), device.tracer(), device.faults(),
             [&device](double gbps) { device.set_link_rate(gbps); },
             [&device](std::uint8_t subtype) { device.port_changed(subtype); }},
            options_),
      traps_("traps", device.port(), port_, device.profile().firmware.command, device.faults()),
      image_(*options_.generation),
      thermal_(device.profile().port.rate_gbps) {
  device.eswitch().set_present(options_.manages_switch());
  device.eswitch().set_owner(of_function(options_, 0).vhca_id);
  device.port().set_link(options_.link == Link::kEthernet ? LinkType::kEthernet : LinkType::kIb);
  for (FunctionId f = 0; f < device.functions(); ++f) {
    const std::string function = "function" + std::to_string(f);
    functions_.push_back(
        std::make_unique<Firmware>(function.c_str(), device, device.function(f), of_function(options_, f),
                                   CardParts{port_, traps_, image_, thermal_, images}, *this));
    device.attach(f, *functions_.back());
  }
  port_.on_move([this](PortState before) {
    for (const auto& function : functions_) function->port_moved(before);
  });
}

CardFirmware::~CardFirmware() = default;

}  // namespace hcasim::fw
