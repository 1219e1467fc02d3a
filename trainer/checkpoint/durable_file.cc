// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// Most bytes of one write(2).
constexpr std::size_t kMaxWrite = std::size_t{8} << 20;

[[noreturn]] void Fail(const char* action, const std::filesystem::path& path, int error,
                       const WriteContext& context) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(EX_OSERR, std::string("cannot ") + action + " " + path.string() + ": " +
                            std::generic_category().message(error) +
                            (full ? "; make room there" : "; check that directory") + " or give " +
                            std::string(context.instead));
}

void Announce(const WriteContext& context, std::string_view call) {
  if (context.hook) context.hook(call);
}

// Not a failure to write: the file system does not know the call.
bool DoesNotKnowSync(int error) {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP;
}

// Closes on the way out of an exception; Close() is the checked way.
class Descriptor {
 public:
  Descriptor(int fd, const char* action, const std::filesystem::path& path,
             const WriteContext& context)
      : fd_(fd), path_(path), context_(context) {
    if (fd < 0) Fail(action, path, errno, context);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void Sync() {
    Announce(context_, "fsync");
    if (::fsync(fd_) != 0 && !DoesNotKnowSync(errno)) Fail("sync", path_, errno, context_);
  }
  void Close() {
    Announce(context_, "close");
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0 && errno != EINTR) Fail("close", path_, errno, context_);
  }

 private:
  int fd_;
  const std::filesystem::path& path_;
  const WriteContext& context_;
};

void WriteAll(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path,
              const WriteContext& context) {
  while (!bytes.empty()) {
    Announce(context, "write");
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxWrite));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail("write", path, errno, context);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace

void WriteNewFile(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const WriteContext& context) {
  Announce(context, "open");
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666),
                  "create", path, context);
  for (const std::span<const std::byte> piece : pieces) WriteAll(file.get(), piece, path, context);
  file.Sync();
  file.Close();
}

void SyncDirectory(const std::filesystem::path& path, const WriteContext& context) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", path,
                       context);
  directory.Sync();
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
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) Fail("create", path, errno, context);
  SyncDirectory(parent, context);
}

void Rename(const std::filesystem::path& from, const std::filesystem::path& to,
            const WriteContext& context) {
  Announce(context, "rename");
  if (::rename(from.c_str(), to.c_str()) != 0) Fail("rename to", to, errno, context);
}

}  // namespace trainer
