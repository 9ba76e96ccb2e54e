// SPDX-License-Identifier: BSD-3-Clause
// A file for what a long run finds: opened before it, so that what cannot be written is said at once.
#ifndef HCASIM_CHART_OUTPUT_FILE_H
#define HCASIM_CHART_OUTPUT_FILE_H

#include <fstream>
#include <string>

namespace hcasim::chart {

class OutputFile {
 public:
  // Throws std::runtime_error: "cannot write PATH".
  explicit OutputFile(const std::string& path);
  // A file that was not there before is not left behind without anything in it.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // In place of what it has had until now. Throws as above.
  void write(const std::string& text);

 private:
  const std::string path_;
  bool empty_;  // made by this, and not written
  std::ofstream file_;
};

}  // namespace hcasim::chart
#endif
