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

[[noreturn]] void Fail(const char* action, const std::filesystem::path& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(EX_OSERR, std::string("cannot ") + action + " " + path.string() + ": " +
                            std::generic_category().message(error) +
                            (full ? "; make room there" : "; check that directory") +
                            " or give another --model_dir (checkpoints already there are intact)");
}

void Announce(const WriteHook& hook, std::string_view call) {
  if (hook) hook(call);
}

// Closes on the way out of an exception; Close() is the checked way.
class Descriptor {
 public:
  Descriptor(int fd, const std::filesystem::path& path) : fd_(fd), path_(path) {
    if (fd < 0) Fail("create", path, errno);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void Sync(const WriteHook& hook) {
    Announce(hook, "fsync");
    if (::fsync(fd_) != 0) Fail("sync", path_, errno);
  }
  void Close(const WriteHook& hook) {
    Announce(hook, "close");
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0 && errno != EINTR) Fail("close", path_, errno);
  }

 private:
  int fd_;
  const std::filesystem::path& path_;
};

void WriteAll(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path,
              const WriteHook& hook) {
  while (!bytes.empty()) {
    Announce(hook, "write");
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxWrite));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace

void WriteNewFile(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const WriteHook& hook) {
  Announce(hook, "open");
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666),
                  path);
  for (const std::span<const std::byte> piece : pieces) WriteAll(file.get(), piece, path, hook);
  file.Sync(hook);
  file.Close(hook);
}

void SyncDirectory(const std::filesystem::path& path, const WriteHook& hook) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), path);
  directory.Sync(hook);
}

void MakeNewDirectory(const std::filesystem::path& path, const WriteHook& hook) {
  Announce(hook, "mkdir");
  if (::mkdir(path.c_str(), 0777) != 0) Fail("create", path, errno);
}

void MakeDirectories(const std::filesystem::path& path, const WriteHook& hook) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::is_directory(path, ignored)) return;
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  MakeDirectories(parent, hook);
  Announce(hook, "mkdir");
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) Fail("create", path, errno);
  SyncDirectory(parent, hook);
}

void Rename(const std::filesystem::path& from, const std::filesystem::path& to,
            const WriteHook& hook) {
  Announce(hook, "rename");
  if (::rename(from.c_str(), to.c_str()) != 0) Fail("rename to", to, errno);
}

}  // namespace trainer
