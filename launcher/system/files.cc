// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "launcher/base/error.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 16777216;

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open() || fs::is_directory(path)) {
    throw LaunchError(EX_DATAERR, path + " cannot be read: " + std::strerror(errno));
  }
  if (fs::is_regular_file(path) && fs::file_size(path) > kMaxFileBytes) {
    throw LaunchError(EX_DATAERR, path + " is longer than 16 MiB: this is no list of hosts");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

void MakeDirectory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path)) {
    throw LaunchError(EX_OSERR, "cannot make the directory " + path + ": " +
                                    (error ? error.message() : "a file is in the way"));
  }
}

}  // namespace launcher
