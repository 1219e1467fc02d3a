// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/private_directory.h"

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
#include <vector>

#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLockPoll{10};
constexpr mode_t kOwnFile = 0600;
constexpr mode_t kOwnDirectory = 0700;
constexpr mode_t kOthers = 0077;

std::string WhyNotPrivate(const support::Descriptor& directory) {
  struct stat status {};
  if (::fstat(directory.fd(), &status) != 0) return std::generic_category().message(errno);
  if (status.st_uid != ::geteuid()) return "it is of another user";
  if ((status.st_mode & kOthers) != 0) return "it is open to others: chmod 700 makes it private";
  return "";
}

}  // namespace

PrivateDirectory::PrivateDirectory(std::string path) : path_(std::move(path)) {
  if (::mkdir(path_.c_str(), kOwnDirectory) != 0 && errno != EEXIST) {
    throw OsError("cannot make the directory " + path_, errno);
  }
  directory_ =
      support::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory_.is_open()) throw OsError("cannot open the directory " + path_, errno);
  const std::string why = WhyNotPrivate(directory_);
  if (!why.empty()) throw Error(EX_OSERR, "cannot use the directory " + path_ + ": " + why);
}

support::Descriptor PrivateDirectory::Open(const std::string& name, int flags) const {
  return support::Descriptor(::openat(directory_.fd(), name.c_str(),
                                      flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, kOwnFile));
}

std::optional<std::string> PrivateDirectory::Read(const std::string& name,
                                                  std::uint64_t max_bytes) const {
  const support::Descriptor file = Open(name, O_RDONLY);
  struct stat status {};
  if (!file.is_open() || ::fstat(file.fd(), &status) != 0 || status.st_uid != ::geteuid()) {
    return std::nullopt;
  }
  support::WholeFile read = support::ReadWholeFile(file.fd(), max_bytes);
  if (read.problem != support::ReadProblem::kNone) return std::nullopt;
  return std::move(read.content);
}

void PrivateDirectory::Write(const std::string& name, std::string_view bytes) const {
  const int error =
      support::ReplaceFile(name, bytes, {.mode = kOwnFile, .directory = directory_.fd()});
  if (error != 0) throw OsError("cannot write " + path_ + "/" + name, error);
}

support::Descriptor PrivateDirectory::OpenToUpdate(const std::string& name) const {
  support::Descriptor file = Open(name, O_RDWR | O_CREAT);
  if (!file.is_open()) throw OsError("cannot open " + path_ + "/" + name, errno);
  return file;
}

void PrivateDirectory::Prune(const std::string& prefix, std::size_t kept) const {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    std::error_code gone;
    const fs::file_time_type time = entry->last_write_time(gone);
    if (!gone) files.emplace_back(time, entry->path());
  }
  if (files.size() <= kept) return;
  std::ranges::sort(files);
  files.resize(files.size() - kept);
  for (const auto& [time, path] : files) fs::remove(path, error);
}

std::optional<support::Descriptor> PrivateDirectory::Lock(const std::string& name,
                                                          std::chrono::milliseconds timeout) const {
  const auto end = std::chrono::steady_clock::now() + timeout;
  support::Descriptor file = Open(name, O_RDWR | O_CREAT);
  if (!file.is_open()) return std::nullopt;
  while (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    const bool is_held = errno == EWOULDBLOCK || errno == EINTR;
    if (!is_held || std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(kLockPoll);
  }
  return file;
}

}  // namespace trainer
