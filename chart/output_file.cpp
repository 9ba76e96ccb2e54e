// SPDX-License-Identifier: BSD-3-Clause
#include "chart/output_file.h"

#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace hcasim::chart {

namespace fs = std::filesystem;

namespace {

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

// To append: a run that fails leaves what was there.
OutputFile::OutputFile(const std::string& path)
    : path_(path), empty_(!exists(path)), file_(path, std::ios::app) {
  if (!file_) throw std::runtime_error("cannot write " + path_);
}

OutputFile::~OutputFile() {
  std::error_code error;
  if (empty_) fs::remove(path_, error);
}

void OutputFile::write(const std::string& text) {
  std::error_code error;
  if (fs::is_regular_file(path_, error)) fs::resize_file(path_, 0, error);
  empty_ = false;
  file_ << text;
  if (error || !file_.flush()) throw std::runtime_error("cannot write " + path_);
}

}  // namespace hcasim::chart
