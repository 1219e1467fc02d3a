// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/files.h"

#include <sys/stat.h>

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

// "" where it was removed, or is outside of what this process sees.
std::string DirectoryOfSystem() {
  std::error_code error;
  const std::string path = fs::current_path(error).string();
  return !error && path.starts_with('/') ? path : "";
}

LaunchError DirectoryIsGone(const std::string& start) {
  return LaunchError(EX_OSERR,
                     start + "the current directory was removed: change to one that is there (cd)");
}

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
  std::error_code unknown;
  if (error || !fs::is_directory(path, unknown)) {
    throw LaunchError(EX_OSERR, "cannot make the directory " + path + ": " +
                                    (error ? error.message() : "a file is in the way"));
  }
}

std::string CurrentDirectory(const Environment& environment) {
  const std::string path = DirectoryOfSystem();
  if (path.empty()) throw DirectoryIsGone("");
  const std::string name = ValueOr(environment, "PWD", "");
  struct stat here = {};
  struct stat named = {};
  const bool is_same = name.starts_with('/') && stat(".", &here) == 0 &&
                       stat(name.c_str(), &named) == 0 && here.st_dev == named.st_dev &&
                       here.st_ino == named.st_ino;
  return is_same ? name : path;
}

std::string AbsolutePath(const std::string& path) {
  if (path.starts_with('/')) return path;
  const std::string directory = DirectoryOfSystem();
  if (directory.empty()) throw DirectoryIsGone(path + ": ");
  return fs::path(directory) / path;
}

}  // namespace launcher
