// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "support/file.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"

namespace trainer {
namespace {

// Most bytes between two calls of the hook.
constexpr std::size_t kMaxWrite = std::size_t{8} << 20;

[[noreturn]] void Fail(const char* action, const std::filesystem::path& path, int error,
                       const WriteContext& context) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(EX_OSERR, std::string("cannot ") + action + " " + path.string() + ": " +
                            support::DescribeWriteError(path, error) +
                            (full ? "; make room there" : "; check that directory") + " or give " +
                            std::string(context.instead));
}

void Announce(const WriteContext& context, std::string_view call) {
  if (context.hook) context.hook(call);
}

void Check(int error, const char* action, const std::filesystem::path& path,
           const WriteContext& context) {
  if (error != 0) Fail(action, path, error, context);
}

support::Descriptor Open(const std::filesystem::path& path, int flags, const char* action,
                         const WriteContext& context) {
  support::Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.is_open()) Fail(action, path, errno, context);
  return file;
}

void Write(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path,
           const WriteContext& context) {
  std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!left.empty()) {
    Announce(context, "write");
    const std::string_view piece = left.substr(0, kMaxWrite);
    Check(support::WriteAll(fd, piece).error, "write", path, context);
    left.remove_prefix(piece.size());
  }
}

void Sync(int fd, const std::filesystem::path& path, const WriteContext& context) {
  Announce(context, "fsync");
  Check(support::SyncFile(fd), "sync", path, context);
}

bool IsSameFile(const std::filesystem::path& a, const std::filesystem::path& b) {
  struct stat of_a = {};
  struct stat of_b = {};
  return ::lstat(a.c_str(), &of_a) == 0 && ::lstat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

}  // namespace

void WriteNewFile(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const WriteContext& context) {
  Announce(context, "open");
  support::Descriptor file =
      Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create", context);
  for (const std::span<const std::byte> piece : pieces) Write(file.fd(), piece, path, context);
  Sync(file.fd(), path, context);
  Announce(context, "close");
  Check(file.Close(), "close", path, context);
}

void SyncDirectory(const std::filesystem::path& path, const WriteContext& context) {
  Sync(Open(path, O_RDONLY | O_DIRECTORY, "open", context).fd(), path, context);
}

void MakeNewDirectory(const std::filesystem::path& path, const WriteContext& context) {
  Announce(context, "mkdir");
  if (::mkdir(path.c_str(), 0777) != 0) Fail("create", path, errno, context);
}

void MakeDirectories(const std::filesystem::path& path, const WriteContext& context) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::is_directory(path, ignored)) return;
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  MakeDirectories(parent, context);
  Announce(context, "mkdir");
  const int error = ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
  const bool is_there = error == EEXIST && std::filesystem::is_directory(path, ignored);
  if (error != 0 && !is_there) {
    if (error != EEXIST && error != ENOTDIR) Fail("create", path, error, context);
    throw Error(EX_OSERR, "cannot create " + path.string() + ": " +
                              support::DescribeObstacle(path, error) + "; or give " +
                              std::string(context.instead));
  }
  SyncDirectory(parent, context);
}

void Rename(const std::filesystem::path& from, const std::filesystem::path& to,
            const WriteContext& context) {
  Announce(context, "rename");
  if (::rename(from.c_str(), to.c_str()) != 0) Fail("rename to", to, errno, context);
}

bool RenameIfNew(const std::filesystem::path& from, const std::filesystem::path& to,
                 const WriteContext& context) {
  Announce(context, "link");
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return true;
  }
  const int error = errno;
  // Over NFS the answer to a call that has succeeded may be lost, and the repeated one finds this.
  if (error == EEXIST && IsSameFile(from, to)) {
    ::unlink(from.c_str());
    return true;
  }
  if (error == EEXIST) return false;
  if (error != EPERM && error != EOPNOTSUPP && error != ENOSYS) {
    Fail("rename to", to, error, context);
  }
  struct stat info = {};
  if (::lstat(to.c_str(), &info) == 0) return false;
  Rename(from, to, context);
  return true;
}

}  // namespace trainer
