// SPDX-License-Identifier: BSD-3-Clause
// Files and programs of tests.
#ifndef HCASIM_TESTS_FILES_H
#define HCASIM_TESTS_FILES_H

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace hcasim::test {

// Its own, removed at its end.
class Folder {
 public:
  Folder() {
    std::string text = std::filesystem::temp_directory_path() / "hcasim-test.XXXXXX";
    if (mkdtemp(text.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = text;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// What the ends of a wire between processes meet by: "unix:", or what the environment says, such as "shm:".
inline std::string wire_scheme() {
  const char* const given = std::getenv("HCASIM_TEST_WIRE");
  return given ? given : "unix:";
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Ran {
  int status = -1;  // 128: killed by a signal
  std::string text;
};

// A shell's command, with what it says.
inline Ran run(const std::string& command) {
  Ran ran;
  std::FILE* f = ::popen((command + " 2>&1").c_str(), "re");
  if (f == nullptr) return ran;
  char piece[4096];
  while (const std::size_t n = std::fread(piece, 1, sizeof piece, f)) ran.text.append(piece, n);
  const int status = ::pclose(f);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ran;
}

}  // namespace hcasim::test
#endif
