// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr int kBacklog = 16;

support::Descriptor MakeSocket(int flags) {
  return support::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

// Of `path`, which fits.
sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

}  // namespace

std::size_t MaxBytesOfSocketPath() { return sizeof(sockaddr_un::sun_path) - 1; }

// It is bound under another name and renamed once it listens: one that is found and refuses is of
// a process that has ended.
support::Descriptor ListenAt(const std::string& path) {
  const std::string early = path + ".new";
  if (early.size() > MaxBytesOfSocketPath()) {
    throw Error(EX_OSERR, "the path of a socket would be too long: " + path);
  }
  support::Descriptor socket = MakeSocket(SOCK_NONBLOCK);
  const sockaddr_un address = AddressOf(early);
  if (socket.fd() < 0 ||
      ::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.fd(), kBacklog) != 0 || std::rename(early.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(early.c_str());
    throw OsError("cannot make the socket " + path, error);
  }
  return socket;
}

support::Descriptor ConnectTo(const std::string& path, int& error) {
  error = ENAMETOOLONG;
  if (path.size() > MaxBytesOfSocketPath()) return support::Descriptor();
  support::Descriptor socket = MakeSocket(0);
  constexpr timeval kLimit = {kSocketTimeout, 0};
  for (const int name : {SO_SNDTIMEO, SO_RCVTIMEO}) {
    ::setsockopt(socket.fd(), SOL_SOCKET, name, &kLimit, sizeof(kLimit));
  }
  const sockaddr_un address = AddressOf(path);
  error = 0;
  if (socket.fd() < 0 ||
      ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    error = errno;
  }
  return socket;
}

bool IsPeerOf(int fd, uid_t uid) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) &&
         peer.uid == uid;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDirectoryPrefix = "ddltraind.";
constexpr std::string_view kSocketSuffix = ".socket";
// "/12345678.socket.new", with room.
constexpr std::size_t kBytesForSocketName = 32;

bool IsPrivate(const fs::path& directory) {
  struct stat info = {};
  return ::lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 0777) == 0700;
}

bool HasCapacity(const fs::path& directory) {
  return directory.is_absolute() &&
         directory.string().size() + kBytesForSocketName <= MaxBytesOfSocketPath();
}

bool IsStale(const fs::path& socket) {
  int error = 0;
  ConnectTo(socket.string(), error);
  return error == ECONNREFUSED;
}

void RemoveStale(const fs::path& base) {
  std::error_code ignored;
  for (fs::directory_iterator directory(base, ignored), end; !ignored && directory != end;
       directory.increment(ignored)) {
    if (!directory->path().filename().string().starts_with(kDirectoryPrefix) ||
        !IsPrivate(directory->path())) {
      continue;
    }
    std::error_code error;
    for (fs::directory_iterator entry(directory->path(), error), last; !error && entry != last;
         entry.increment(error)) {
      std::error_code unknown;
      if (!entry->is_socket(unknown) || !IsStale(entry->path())) continue;
      fs::remove(entry->path(), unknown);
      fs::remove(directory->path(), unknown);  // where nothing else is in it
    }
  }
}

}  // namespace

SocketDirectory::SocketDirectory(const SocketDirectoryOptions& options) {
  if (HasCapacity(options.run_directory) && IsPrivate(options.run_directory)) {
    path_ = options.run_directory;
    return;
  }
  int error = ENOENT;
  for (const fs::path& base : options.bases) {
    std::string directory = (base / (std::string(kDirectoryPrefix) + "XXXXXX")).string();
    if (!HasCapacity(directory)) continue;
    RemoveStale(base);
    if (::mkdtemp(directory.data()) != nullptr) {
      path_ = directory;
      is_own_ = true;
      return;
    }
    error = errno;
  }
  throw OsError("no directory for a socket can be made in XDG_RUNTIME_DIR, TMPDIR or /tmp", error);
}

SocketDirectory::~SocketDirectory() {
  if (is_own_) ::rmdir(path_.c_str());
}

fs::path SocketDirectory::socket() const {
  return path_ / (std::to_string(::getpid()) + std::string(kSocketSuffix));
}

}  // namespace trainer
