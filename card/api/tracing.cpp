// SPDX-License-Identifier: BSD-3-Clause
// Traces and captures while the machine runs: what hca_set_trace() and hca_get_trace() do.
#include <cstdlib>
#include <cstring>

#include "card/api/instance.h"
#include "card/replay/recording.h"

namespace {

constexpr unsigned kMostRing = 64 * 1024;  // MiB

bool to_mib(const std::string& text, unsigned& out) {
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  out = static_cast<unsigned>(std::strtoul(text.c_str(), nullptr, 10));
  return out <= kMostRing;
}

}  // namespace

bool hca::trace_to(const std::string& path, std::string& why) {
  tracer->close();
  trace_path.clear();
  if (path.empty()) return !hcasim::api::Recorder::current() || tracer->open("/dev/null", &why);
  const bool good = trace_ring_mib != 0 ? tracer->open_ring(path, std::size_t{trace_ring_mib} << 20, &why)
                                        : tracer->open(path, &why);
  if (good) {
    trace_path = path;
  } else if (hcasim::api::Recorder::current()) {
    std::string nothing;
    tracer->open("/dev/null", &nothing);  // as a replay goes on
  }
  return good;
}

bool hca::capture_to(const std::string& path, std::string& why) {
  if (path == capture_path) return true;
  capture_path.clear();
  // The last port of a file completes it.
  model.port().capture_to(nullptr, "");
  capture.reset();
  if (path.empty()) return true;
  capture = hcasim::traces::Capture::get(path, &why);
  if (!capture) return false;
  model.port().capture_to(capture, settings.name);
  capture_path = path;
  return true;
}

bool hca::set_trace(const std::string& key, const std::string& value, std::string& why) {
  if (key == "on") {
    if (value != "on" && value != "off") {
      why = "on=" + value + ": allowed: on, off";
      return false;
    }
    tracer->set_on(value == "on");
    return true;
  }
  if (key == "filter") return tracer->set_filter(value, &why);
  if (key == "file") return trace_to(value, why);
  if (key == "ring") {
    unsigned mib = 0;
    if (!to_mib(value, mib)) {
      why = "ring=" + value + ": allowed: 0 to " + std::to_string(kMostRing) + " MiB, for the next file";
      return false;
    }
    trace_ring_mib = mib;
    return true;
  }
  if (key == "dump") return tracer->dump(value, &why);
  if (key == "flush") {
    tracer->flush();
    if (capture) {
      capture->settle(hcasim::sim_now());
      capture->flush();
    }
    return true;
  }
  if (key == "capture") return capture_to(value, why);
  why = "unknown key " + key + "; there are on, filter, file, ring, dump, flush, capture";
  return false;
}

std::string hca::get_trace(const std::string& key) const {
  if (key == "on") return tracer->on() ? "on" : "off";
  if (key == "filter") return tracer->filter();
  if (key == "file") return trace_path;
  if (key == "ring") return std::to_string(trace_ring_mib);
  if (key == "capture") return capture_path;
  return "";
}
