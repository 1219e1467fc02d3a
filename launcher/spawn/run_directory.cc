// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/run_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "launcher/error.h"

namespace launcher {
namespace {

LaunchError OsError(const std::string& action) {
  return LaunchError(EX_OSERR, action + ": " + std::strerror(errno));
}

bool IsUsableBase(const std::string& path) {
  struct stat info = {};
  return path.starts_with('/') && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         access(path.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

std::string RunDirectoryBase(const Environment& environment) {
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR", "XDG_RUNTIME_DIR"}) {
    const auto found = environment.find(name);
    if (found != environment.end() && IsUsableBase(found->second)) return found->second;
  }
  return IsUsableBase("/tmp") ? "/tmp" : "/dev/shm";
}

RunDirectory::RunDirectory(const std::string& base, bool keep) : keep_(keep) {
  path_ = std::filesystem::absolute(base) / "ddlrun.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw OsError("cannot make a run directory in " + base);
  struct stat info = {};
  if (lstat(path_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 0777) != 0700) {
    throw LaunchError(EX_OSERR, path_ +
                                    " is not a private directory (0700, own); choose another "
                                    "place: --run-dir DIR");
  }
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (!keep_) std::filesystem::remove_all(path_, ignored);
}

void RunDirectory::Append(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) throw OsError("cannot write " + path);
  const ssize_t written = write(file, text.data(), text.size());
  const bool complete = written == static_cast<ssize_t>(text.size());
  if (close(file) != 0 || !complete) {
    throw LaunchError(EX_OSERR, "cannot write " + path + ": " + std::strerror(errno) +
                                    "; choose another place: --run-dir DIR");
  }
}

}  // namespace launcher
