// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

std::string FindProgram(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? AbsolutePath(name) : "";
  }
  const auto path = environment.find("PATH");
  std::string rest = path == environment.end() ? "" : path->second;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string candidate = rest.substr(0, colon) + "/" + name;
    std::error_code unknown;
    if (candidate[0] == '/' && access(candidate.c_str(), X_OK) == 0 &&
        !fs::is_directory(candidate, unknown)) {
      return candidate;
    }
    rest.erase(0, colon + 1);
  }
  return "";
}

std::string ProgramDirectory() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    throw LaunchError(
        EX_OSERR, "/proc/self/exe cannot be read, which says where ddlrun is: " + error.message());
  }
  return program.parent_path().string();
}

std::string FindProgramOrNeighbor(const std::string& name, const Environment& environment) {
  const std::string found = FindProgram(name, environment);
  if (!found.empty() || name.find('/') != std::string::npos) return found;
  return FindProgram(name, {{"PATH", ProgramDirectory()}});
}

std::string RequireHelper(const std::string& name, const std::string& program_directory) {
  const std::string path = fs::path(program_directory).parent_path() / "libexec/ddlrun" / name;
  if (access(path.c_str(), X_OK) == 0) return path;
  throw LaunchError(EX_UNAVAILABLE,
                    path +
                        " is missing: ddlrun is not completely installed; build it again (cmake "
                        "--build --preset release --target ddlrun) or install all of it (cmake "
                        "--install)");
}

}  // namespace launcher
