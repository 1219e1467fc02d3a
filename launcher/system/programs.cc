// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/programs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "launcher/base/error.h"
#include "launcher/system/files.h"

namespace launcher {

namespace fs = std::filesystem;

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
