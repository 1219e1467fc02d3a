// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/socket_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "trainer/control/unix_socket.h"
#include "trainer/core/error.h"

namespace trainer {
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
