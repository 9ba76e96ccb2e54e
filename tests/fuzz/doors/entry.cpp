// SPDX-License-Identifier: BSD-3-Clause
// The program of a door:
//   DOOR --seeds FOLDER     writes the inputs to begin with, a file each
//   DOOR FILE|FOLDER...     opens the door to each file (of libFuzzer: with its options, and folders are
//   corpora)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "door.h"

namespace {

namespace fs = std::filesystem;

int write_seeds(const fs::path& folder) {
  fs::create_directories(folder);
  std::size_t n = 0;
  for (const std::string& seed : hcasim::fuzz::seeds()) {
    std::ofstream out(folder / ("seed-" + std::to_string(n++)), std::ios::binary);
    if (!out.write(seed.data(), static_cast<std::streamsize>(seed.size()))) {
      std::fprintf(stderr, "%s: cannot be written\n", folder.c_str());
      return 1;
    }
  }
  std::printf("%zu seeds\n", n);
  return 0;
}

}  // namespace

[[noreturn]] void hcasim::fuzz::finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t len) {
  hcasim::fuzz::open_door(bytes, len);
  return 0;
}

#ifdef HCASIM_FUZZ
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 3 && std::string((*argv)[1]) == "--seeds") std::exit(write_seeds((*argv)[2]));
  return 0;
}
#else
int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--seeds") return write_seeds(argv[2]);
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    if (fs::is_directory(argv[i]))
      for (const auto& entry : fs::directory_iterator(argv[i])) files.push_back(entry.path());
    else
      files.emplace_back(argv[i]);
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!in) {
      std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
      return 1;
    }
    std::fprintf(stderr, "%s\n", file.c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
#endif
