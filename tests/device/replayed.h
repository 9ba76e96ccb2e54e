// SPDX-License-Identifier: BSD-3-Clause
// Recordings in tests, and the program that replays them.
#ifndef HCASIM_TESTS_DEVICE_REPLAYED_H
#define HCASIM_TESTS_DEVICE_REPLAYED_H

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../files.h"
#include "traces/stream_file.h"

namespace hcasim::test {

inline Ran replay(const std::string& arguments) { return run("timeout 60 " REPLAY " " + arguments); }

// Options of the HCA that begins a recording, with its trace.
inline std::string recorded(const std::string& recording, const std::string& trace) {
  return "record=" + recording + ",trace=" + trace + ",trace_filter=detail,";
}

// It replays, and its trace has the same bytes.
inline void expect_same(const std::string& recording, const std::string& trace) {
  const std::string again = trace + ".again";
  const Ran ran = replay(recording + " --trace " + again);
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_THAT(ran.text, ::testing::ContainsRegex("as recorded; .*statistics of"));
  EXPECT_THAT(ran.text, ::testing::Not(::testing::HasSubstr("NOT")));
  const std::string first = bytes_of(trace);
  EXPECT_GT(first.size(), 1000u);
  EXPECT_TRUE(first == bytes_of(again)) << "the traces differ";
}

// The records of a recording, as they are without packing.
inline constexpr char kRecordingMagic[] = "HCASIMRP";
inline constexpr std::uint32_t kRecordingVersion = 4;

inline std::string records_of(const std::string& path) {
  traces::StreamReader in;
  std::string err, out;
  EXPECT_TRUE(in.open(path, kRecordingMagic, kRecordingVersion, &err)) << err;
  std::uint8_t byte = 0;
  while (in.read(byte)) out += static_cast<char>(byte);
  EXPECT_EQ(in.warning(), "");
  return out;
}

inline void write_records(const std::string& path, const std::string& records) {
  std::string err;
  auto out = traces::StreamWriter::create(path, kRecordingMagic, kRecordingVersion, &err);
  ASSERT_NE(out, nullptr) << err;
  out->put(records.data(), records.size());
  EXPECT_TRUE(out->finish());
}

}  // namespace hcasim::test
#endif
