// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/socket_folder.h"

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

constexpr std::string_view kFolderPrefix = "ddltraind.";
constexpr std::string_view kSocketSuffix = ".socket";
// "/12345678.socket.new", with room.
constexpr std::size_t kBytesForSocketName = 32;

bool IsPrivate(const fs::path& folder) {
  struct stat info = {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 0777) == 0700;
}

bool HasCapacity(const fs::path& folder) {
  return folder.is_absolute() &&
         folder.string().size() + kBytesForSocketName <= MostBytesOfSocketPath();
}

bool IsLeftBehind(const fs::path& socket) {
  int error = 0;
  ConnectTo(socket.string(), error);
  return error == ECONNREFUSED;
}

void RemoveLeftBehind(const fs::path& base) {
  std::error_code ignored;
  for (fs::directory_iterator folder(base, ignored), end; !ignored && folder != end;
       folder.increment(ignored)) {
    if (!folder->path().filename().string().starts_with(kFolderPrefix) ||
        !IsPrivate(folder->path())) {
      continue;
    }
    std::error_code error;
    for (fs::directory_iterator entry(folder->path(), error), last; !error && entry != last;
         entry.increment(error)) {
      std::error_code unknown;
      if (!entry->is_socket(unknown) || !IsLeftBehind(entry->path())) continue;
      fs::remove(entry->path(), unknown);
      fs::remove(folder->path(), unknown);  // where nothing else is in it
    }
  }
}

}  // namespace

SocketFolder::SocketFolder(const SocketFolderOptions& options) {
  if (HasCapacity(options.run_directory) && IsPrivate(options.run_directory)) {
    path_ = options.run_directory;
    return;
  }
  int error = ENOENT;
  for (const fs::path& base : options.bases) {
    std::string folder = (base / (std::string(kFolderPrefix) + "XXXXXX")).string();
    if (!HasCapacity(folder)) continue;
    RemoveLeftBehind(base);
    if (::mkdtemp(folder.data()) != nullptr) {
      path_ = folder;
      is_own_ = true;
      return;
    }
    error = errno;
  }
  throw OsError("no folder for a socket can be made in XDG_RUNTIME_DIR, TMPDIR or /tmp", error);
}

SocketFolder::~SocketFolder() {
  if (is_own_) ::rmdir(path_.c_str());
}

fs::path SocketFolder::socket() const {
  return path_ / (std::to_string(::getpid()) + std::string(kSocketSuffix));
}

}  // namespace trainer
