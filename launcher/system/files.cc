// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/files.h"

#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "launcher/base/error.h"
#include "support/file.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 16777216;

}  // namespace

std::string ReadFile(const std::string& path) {
  support::WholeFile file = support::ReadWholeFile(path, kMaxFileBytes, support::FileKind::kAny);
  if (file.problem == support::ReadProblem::kTooLong) {
    throw LaunchError(EX_DATAERR, path + " is longer than 16 MiB: this is no list of hosts");
  }
  if (file.problem != support::ReadProblem::kNone) {
    throw LaunchError(EX_DATAERR, path + " cannot be read: " + std::strerror(file.error));
  }
  return std::move(file.content);
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
