// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLockPoll{10};
constexpr mode_t kOwnFile = 0600;
constexpr mode_t kOwnFolder = 0700;
constexpr mode_t kOthers = 0077;

std::string WhyNotPrivate(const FileDescriptor& folder) {
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0) return std::generic_category().message(errno);
  if (status.st_uid != ::geteuid()) return "it is of another user";
  if ((status.st_mode & kOthers) != 0) return "it is open to others: chmod 700 makes it private";
  return "";
}

// Removes a file that has not got its name.
class Unfinished {
 public:
  Unfinished(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  ~Unfinished() {
    if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  void Keep() { name_.clear(); }

 private:
  int folder_;
  std::string name_;
};

}  // namespace

PrivateFolder::PrivateFolder(std::string path) : path_(std::move(path)) {
  if (::mkdir(path_.c_str(), kOwnFolder) != 0 && errno != EEXIST) {
    throw OsError("cannot make the folder " + path_, errno);
  }
  folder_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder_) throw OsError("cannot open the folder " + path_, errno);
  const std::string why = WhyNotPrivate(folder_);
  if (!why.empty()) throw Error(EX_OSERR, "cannot use the folder " + path_ + ": " + why);
}

FileDescriptor PrivateFolder::Open(const std::string& name, int flags) const {
  return FileDescriptor(
      ::openat(folder_.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, kOwnFile));
}

std::optional<std::vector<std::uint8_t>> PrivateFolder::Read(const std::string& name,
                                                             std::uint64_t max_bytes) const {
  const FileDescriptor file = Open(name, O_RDONLY);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || static_cast<std::uint64_t>(status.st_size) > max_bytes) {
    return std::nullopt;
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
  try {
    bytes.resize(ReadAt(file, name, 0, bytes));
  } catch (const Error&) {
    return std::nullopt;
  }
  return bytes;
}

void PrivateFolder::Write(const std::string& name, std::string_view bytes) const {
  const std::string path = path_ + "/" + name;
  const std::string temporary = "." + name + ".tmp";
  ::unlinkat(folder_.get(), temporary.c_str(), 0);  // of a process that was killed
  const FileDescriptor file = Open(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (!file) throw OsError("cannot create " + path, errno);
  Unfinished unfinished(folder_.get(), temporary);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw OsError("cannot write " + path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::renameat(folder_.get(), temporary.c_str(), folder_.get(), name.c_str()) != 0) {
    throw OsError("cannot write " + path, errno);
  }
  unfinished.Keep();
}

void PrivateFolder::Prune(const std::string& prefix, std::size_t kept) const {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    std::error_code gone;
    const fs::file_time_type time = entry.last_write_time(gone);
    if (!gone) files.emplace_back(time, entry.path());
  }
  if (files.size() <= kept) return;
  std::ranges::sort(files);
  files.resize(files.size() - kept);
  for (const auto& [time, path] : files) fs::remove(path, error);
}

std::optional<FileDescriptor> PrivateFolder::Lock(const std::string& name,
                                                  std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  FileDescriptor file = Open(name, O_RDWR | O_CREAT);
  if (!file) return std::nullopt;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    const bool is_held = errno == EWOULDBLOCK || errno == EINTR;
    if (!is_held || std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(kLockPoll);
  }
  return file;
}

}  // namespace trainer
