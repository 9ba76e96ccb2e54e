// SPDX-License-Identifier: BSD-3-Clause
/// Writes a trace of `count` SENDs to a file and tells what a record costs: trace_sample FILE [count]. Or one
/// with some of everything, by so many queues: trace_sample FILE count varied [queues]. Or `count`
/// records in which nothing fits together: trace_sample FILE count anything.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "traces/tracer.h"
#include "varied_trace.h"

using namespace hcasim::traces;

namespace {

double run(Tracer& t, std::uint32_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < count; i++) {
    const std::int64_t now = i * 500000ll;
    t.record(Point::kDoorbell, now, 0x42, i, i & 0xffff, 3);
    t.record(Point::kWqeFetch, now + 300000, 0x42, i, 64, i & 0xffff);
    t.record(Point::kWqeParsed, now + 310000, 0x42, i, 0x0a | (i & 0xffff) << 16, 64);
    t.record(Point::kPacketTxFirst, now + 350000, 0x42, i, i & 0xffffff, 64);
    t.record(Point::kPacketTxLast, now + 360000, 0x42, i, i & 0xffffff, 1);
    t.record(Point::kAckRx, now + 1360000, 0x42, i, i & 0xffffff, 0);
    t.record(Point::kCqeWritten, now + 1400000, 0x42, i, 6, i);
    t.record(Point::kCqConsumed, now + 1500000, 6, i + 1);
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
         (8.0 * count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto count = static_cast<std::uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 0) : 1000);
  if (argc > 3) {
    Tracer tx(0), rx(1);
    std::string err;
    const bool anything = std::strcmp(argv[3], "anything") == 0;
    if ((!anything && std::strcmp(argv[3], "varied") != 0) || !tx.open(argv[1], &err) ||
        !rx.open(argv[1], &err)) {
      std::fprintf(stderr, "trace_sample: %s\n", err.c_str());
      return 1;
    }
    if (anything)
      write_anything(tx, count);
    else
      VariedTrace(tx, rx, argc > 4 ? static_cast<unsigned>(std::strtoul(argv[4], nullptr, 0)) : 6)
          .write(count);
    return 0;
  }
  Tracer t;
  const double off = run(t, count);
  std::string err;
  if (!t.open(argv[1], &err)) {
    std::fprintf(stderr, "%s\n", err.c_str());
    return 1;
  }
  const double on = run(t, count);
  t.close();
  std::printf("record: %.1f ns off, %.1f ns on\n", off, on);
}
