// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/programs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "launcher/base/error.h"

namespace launcher {

namespace fs = std::filesystem;

std::string FindProgram(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? fs::absolute(name).string() : "";
  }
  const auto path = environment.find("PATH");
  std::string rest = path == environment.end() ? "" : path->second;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string candidate = rest.substr(0, colon) + "/" + name;
    if (candidate[0] == '/' && access(candidate.c_str(), X_OK) == 0 &&
        !fs::is_directory(candidate)) {
      return candidate;
    }
    rest.erase(0, colon + 1);
  }
  return "";
}

std::string ProgramDirectory() { return fs::read_symlink("/proc/self/exe").parent_path().string(); }

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
