// SPDX-License-Identifier: BSD-3-Clause
// perftest's output (ib_write_lat, ib_send_bw and their like), read as rows of figures, and written.
// perftest's MB are MiB; its BW average and MsgRate count both directions of a bidirectional test.
#ifndef HCASIM_TESTS_BENCH_PERFTEST_H
#define HCASIM_TESTS_BENCH_PERFTEST_H

#include <string>
#include <vector>

#include "published.h"

namespace hcasim::bench {

struct PerftestRows {
  std::vector<PublishedRow> rows;  // `tolerance`: the standard deviation that a figure is taken to have, %
  std::vector<std::string> notes;  // what of the runs is measured otherwise here, with its line
};

// Several runs one after the other, sweeps over sizes; lines between them that are not perftest's are passed
// over. base: what the output does not tell. Of large messages fewer are measured, with shorter
// queues than perftest's, as some MiB under way are enough. Throws std::runtime_error "file:line: what is
// allowed".
PerftestRows read_perftest(const std::string& text, const std::string& file, const timing::Setup& base);

// Measurements that differ in nothing but size share a heading, as in a sweep over sizes. BW peak is 0, as
// with --noPeak: it is not measured.
std::string perftest_text(const std::vector<timing::Setup>& setups,
                          const std::vector<timing::Result>& results);

}  // namespace hcasim::bench
#endif
