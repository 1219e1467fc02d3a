// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/system/files.h"
#include "support/file.h"

namespace launcher {
namespace {

constexpr std::string_view kPrefix = "ddlrun.";
static_assert(std::string_view(kRunDirectoryName).starts_with(kPrefix));

// In a container without a mapping of root its files are of this user.
constexpr uid_t kOverflowUser = 65534;

// Whether those who have the rights `write` in the directory cannot replace what this user makes
// there: its owner, who always can, is this user or root, and it has the sticky bit.
bool IsSafeBase(const struct stat& info, mode_t write) {
  if ((info.st_mode & write) == 0) return true;
  const bool is_trusted =
      info.st_uid == geteuid() || info.st_uid == 0 || info.st_uid == kOverflowUser;
  return is_trusted && (info.st_mode & S_ISVTX) != 0;
}

bool IsUsableBase(const std::string& path) {
  struct stat info = {};
  return path.starts_with('/') && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         IsSafeBase(info, S_IWGRP | S_IWOTH) && access(path.c_str(), W_OK | X_OK) == 0;
}

// The members of a group trust each other in the directories that they share; nobody trusts all.
void RequireSafeBase(const std::string& base) {
  struct stat info = {};
  if (stat(base.c_str(), &info) != 0 || IsSafeBase(info, S_IWOTH)) return;
  throw LaunchError(EX_CONFIG, base +
                                   ": every user may write there, and it has no sticky bit or "
                                   "belongs to another user, so that others could replace the run "
                                   "directory: chmod +t, or choose another place: --run-dir DIR");
}

// In a run directory that is not to be kept, ddlrun holds a lock on a file of this name, the mark.
// The kernel releases the lock when that ddlrun is gone, however it ended.  The name of the node is
// in it because other nodes may see the directory too, and not every file system shows them the
// lock.
std::string MarkOfThisNode() {
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  return std::string("running-on-") + host.data();
}

// Makes the mark under another name and renames it once it is locked, so that nobody finds it
// unlocked.  None where that is not possible; every other ddlrun then leaves the directory alone.
support::Descriptor LockMark(const std::string& directory) {
  const std::string early_name = directory + "/mark";
  support::Descriptor mark(
      open(early_name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const bool is_locked =
      mark.is_open() && flock(mark.fd(), LOCK_EX | LOCK_NB) == 0 &&
      rename(early_name.c_str(), (directory + "/" + MarkOfThisNode()).c_str()) == 0;
  return is_locked ? std::move(mark) : support::Descriptor();
}

support::Descriptor OpenDirectory(const std::string& path) {
  return support::Descriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Removes what is in `directory`, which was found at `path`, and then `path`, if nothing is in it:
// somebody else may have put another directory there since.
void RemoveDirectory(const support::Descriptor& directory, const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd/" + std::to_string(directory.fd()),
                                            error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    std::filesystem::remove_all(entry->path(), ignored);
  }
  rmdir(path.c_str());
}

// Whether it is a directory of this user, made on this node, and its ddlrun is gone.
bool IsStale(const support::Descriptor& directory) {
  struct stat info = {};
  if (!directory.is_open() || fstat(directory.fd(), &info) != 0 || info.st_uid != geteuid()) {
    return false;
  }
  const support::Descriptor mark(
      openat(directory.fd(), MarkOfThisNode().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  return mark.is_open() && flock(mark.fd(), LOCK_EX | LOCK_NB) == 0;
}

// What ranks of this node have made beside the run directory `path` (shim/shared_memory.h) and left
// there, since their shims were killed.
void RemoveSharedMemoryOf(const std::string& path) {
  const std::string shared = "/dev/shm" + path.substr(path.rfind('/'));
  const support::Descriptor directory = OpenDirectory(shared);
  struct stat info = {};
  const bool is_own =
      directory.is_open() && fstat(directory.fd(), &info) == 0 && info.st_uid == geteuid();
  if (is_own && shared != path) RemoveDirectory(directory, shared);
}

void RemoveStale(const std::filesystem::path& base) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(base, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    const support::Descriptor directory = OpenDirectory(entry->path());
    if (!IsStale(directory)) continue;
    RemoveDirectory(directory, entry->path());
    RemoveSharedMemoryOf(entry->path());
  }
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
  RequireSafeBase(base);
  if (!keep) RemoveStale(base);
  path_ = std::filesystem::path(AbsolutePath(base)) / kRunDirectoryName;
  if (mkdtemp(path_.data()) == nullptr) throw OsError("cannot make a run directory in " + base);
  chmod(path_.c_str(), 0700);  // a umask may have taken some of these rights away
  directory_ = OpenDirectory(path_);
  struct stat info = {};
  if (!directory_.is_open() || fstat(directory_.fd(), &info) != 0 || info.st_uid != geteuid() ||
      (info.st_mode & 0777) != 0700) {
    rmdir(path_.c_str());
    throw LaunchError(EX_OSERR, path_ +
                                    " is not a private directory (0700, own); choose another "
                                    "place: --run-dir DIR");
  }
  if (!keep) mark_ = LockMark(path_);
}

RunDirectory::~RunDirectory() {
  if (!keep_) RemoveDirectory(directory_, path_);
  RemoveSharedMemoryOf(path_);
}

void RunDirectory::Append(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  support::Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) throw OsError("cannot write " + path);
  const int writing = support::WriteAll(file.fd(), text).error;
  const int closing = file.Close();
  if (writing != 0 || closing != 0) {
    throw LaunchError(EX_OSERR, "cannot write " + path + ": " +
                                    std::strerror(writing != 0 ? writing : closing) +
                                    "; choose another place: --run-dir DIR");
  }
}

}  // namespace launcher
