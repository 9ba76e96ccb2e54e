// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/parts.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace hcasim::api {

std::vector<std::string> profile_folders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("HCASIM_PROFILE_PATH")) {
    const std::string text = path;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(':', at), text.size());
      if (end > at) folders.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  folders.emplace_back(HCASIM_PROFILE_DIR);
#ifdef HCASIM_PROFILES_FROM_LIBRARY
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&profile_folders), &here) != 0 && here.dli_fname != nullptr)
    folders.push_back(std::filesystem::path(here.dli_fname).parent_path() / HCASIM_PROFILES_FROM_LIBRARY);
#endif
  return folders;
}

bool make_parts(const std::string& options, unsigned number, Parts& parts, std::string& why) {
  Settings& settings = parts.settings;
  if (!parse_options(options, settings, why)) return false;
  if (settings.name.empty()) settings.name = "hca" + std::to_string(number);
  Profile& profile = parts.profile;
  if (!Profile::load(settings.profile, profile_folders(), profile, why, settings.parameters)) return false;
  if (settings.batch_window) profile.engine.batch_window = *settings.batch_window;
  if (settings.wire_latency) profile.port.wire_latency = *settings.wire_latency;
  if (settings.coupled && profile.port.wire_latency <= 0) {
    why = "coupled=on: the profile's cable has no latency: give wire_latency_ns";
    return false;
  }
  if (settings.generation) profile.generation = settings.generation;
  if (settings.firmware.link == fw::Link::kInfiniBand && profile.generation->ib_speeds == 0) {
    why = std::string("link=ib: ") + profile.generation->product + " has Ethernet ports only (profile " +
          profile.name + ")";
    return false;
  }
  if (settings.firmware.sfs != 0 && settings.firmware.link != fw::Link::kEthernet) {
    why = "sfs=" + std::to_string(settings.firmware.sfs) + ": sub-functions are for link=eth";
    return false;
  }
  if (settings.firmware.sfs != 0 && !profile.generation->has.flow_rewrite) {
    why = "sfs=" + std::to_string(settings.firmware.sfs) + ": sub-functions need switchdev mode, which " +
          profile.generation->product + " has not";
    return false;
  }
  if (settings.firmware.crypto && settings.firmware.link != fw::Link::kEthernet) {
    why = "crypto=on: TLS, IPsec and MACsec are for link=eth";
    return false;
  }
  if (settings.firmware.crypto && !profile.generation->has.crypto) {
    why = std::string("crypto=on: ") + profile.generation->product +
          " cannot encrypt; give generation=connectx6dx or connectx7";
    return false;
  }
  if (settings.dc_contexts) profile.engine.dc_contexts = *settings.dc_contexts;
  parts.tracer = std::make_unique<traces::Tracer>(number);
  traces::Tracer& tracer = *parts.tracer;
  tracer.set_on(settings.trace_on);
  tracer.set_filter(settings.trace_filter, nullptr);
  tracer.rules().set_mode(settings.rules);
  if (settings.trace.empty()) return true;
  const bool open = settings.trace_ring != 0
                        ? tracer.open_ring(settings.trace, std::size_t{settings.trace_ring} << 20, &why)
                        : tracer.open(settings.trace, &why);
  if (!open) why.insert(0, "trace=" + settings.trace + ": ");
  return open;
}

void set_up(const Settings& settings, Device& model) {
  for (FunctionId f = 0; f < model.functions(); ++f)
    model.function(f).uars().set_blueflame(settings.firmware.bf);
  // Where a driver has the say, it has not said so yet.
  for (FunctionId f = 0; settings.firmware.ats && f < model.functions(); ++f)
    model.dma().keep_translations(f, false);
  model.port().faults() = settings.faults;
  model.port().reseed();
}

}  // namespace hcasim::api
