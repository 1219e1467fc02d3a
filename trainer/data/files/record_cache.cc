// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/record_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <system_error>
#include <thread>

#include "support/file.h"
#include "trainer/core/consistency_item.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "records-";
constexpr std::uint64_t kLooksForOthers = 64;  // records that are kept between two
constexpr std::chrono::milliseconds kFileLockPoll{10};

std::uint64_t BytesOnDisk(const struct stat& status) {
  constexpr std::uint64_t kBlockBytes = 512;  // of st_blocks, whatever the file system has
  return static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes;
}

// Without the device, which is another one each time a network's file system is mounted.
std::string StateOf(std::span<const RecordFile> files) {
  Fingerprint state;
  for (const RecordFile& file : files) {
    const FileIdentity& identity = file.identity();
    state.Add(fs::path(file.path()).filename().string());
    state.Add(identity.inode);
    state.Add(identity.bytes);
    state.Add(static_cast<std::uint64_t>(identity.modified));
    state.Add(static_cast<std::uint64_t>(identity.changed));
  }
  return state.hex();
}

// The first file that may be changed once more with the same time; null if there is none.
const RecordFile* FindUnsettled(std::span<const RecordFile> files,
                                std::chrono::nanoseconds settled) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto found = std::ranges::find_if(files, [&](const RecordFile& file) {
    return now - std::chrono::nanoseconds(file.identity().changed) < settled;
  });
  return found == files.end() ? nullptr : &*found;
}

std::uint64_t FreeBytes(const std::string& directory) {
  struct statvfs status {};
  if (::statvfs(directory.c_str(), &status) != 0) {
    throw OsError("--record_cache: cannot tell how much is free in " + directory +
                      ", so give --record_cache_gb",
                  errno);
  }
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

// Whose directory it is, and where, the user alone can change.
PrivateDirectory OpenDirectory(const std::string& directory) {
  try {
    return PrivateDirectory(directory);
  } catch (const Error& error) {
    throw Error(error.exit_code(), std::string("--record_cache: ") + error.what() +
                                       "; give another one, or leave it out");
  }
}

// Nobody else has it open.
void RemoveIfUnused(const fs::path& path) {
  const support::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open() || ::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) return;
  ::unlink(path.c_str());
}

}  // namespace

RecordCache::RecordCache(std::span<const RecordFile> files, const std::string& set,
                         const std::string& part, const RecordCacheOptions& options)
    : directory_(OpenDirectory(options.dir)), max_bytes_(options.max_bytes) {
  first_byte_.push_back(0);
  for (const RecordFile& file : files) first_byte_.push_back(first_byte_.back() + file.bytes());
  if (const RecordFile* file = FindUnsettled(files, options.settled)) {
    StopKeeping(file->path() + " was changed just now");
    return;
  }
  const std::string set_prefix = kPrefix + HexFingerprint(set) + "-";
  const std::string part_prefix = set_prefix + part + "-";
  if (!OpenFile(part_prefix + StateOf(files), options.timeout)) {
    StopKeeping("another process holds the lock of " + path_.string());
    file_ = {};
    path_.clear();
    return;
  }
  if (max_bytes_ == 0) max_bytes_ = (FreeBytes(options.dir) + OwnBytes() + BytesOfOthers()) / 2;
  RemoveOthers(set_prefix, part_prefix);
}

// Who removes a file holds it for a moment.  False if that lasts: the process may have been
// stopped.
bool RecordCache::OpenFile(const std::string& name, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  path_ = fs::path(directory_.path()) / name;
  while (true) {
    file_ = directory_.OpenToUpdate(name);
    const bool is_held = ::flock(file_.fd(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    if (::fstat(file_.fd(), &status) != 0) throw OsError("cannot use " + path_.string(), errno);
    if (!is_held && status.st_nlink > 0) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    if (is_held) std::this_thread::sleep_for(kFileLockPoll);
  }
}

std::vector<RecordCache::Other> RecordCache::FindOthers() const {
  std::vector<Other> others;
  std::error_code error;
  for (fs::directory_iterator entry(directory_.path(), error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status {};
    const fs::path& path = entry->path();
    const bool is_other = path.filename().string().starts_with(kPrefix) && path != path_ &&
                          ::lstat(path.c_str(), &status) == 0;
    if (!is_other) continue;
    std::error_code gone;
    others.push_back({entry->last_write_time(gone), path, BytesOnDisk(status)});
  }
  return others;
}

std::uint64_t RecordCache::BytesOfOthers() const {
  const std::vector<Other> others = FindOthers();
  return std::accumulate(others.begin(), others.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Other& other) { return sum + other.bytes; });
}

std::uint64_t RecordCache::OwnBytes() const {
  struct stat status {};
  return file_.is_open() && ::fstat(file_.fd(), &status) == 0 ? BytesOnDisk(status) : 0;
}

// The other part of this set is another file of the same run.
void RecordCache::RemoveOthers(const std::string& set_prefix, const std::string& part_prefix) {
  std::vector<Other> others = FindOthers();
  std::ranges::sort(others, {}, &Other::time);
  for (const Other& other : others) {
    const std::string name = other.path.filename().string();
    const bool is_outdated = name.starts_with(part_prefix);
    const bool is_in_the_way = !name.starts_with(set_prefix) && SetBytes() > OwnBytes() &&
                               SetBytes() + BytesOfOthers() > max_bytes_;
    if (is_outdated || is_in_the_way) RemoveIfUnused(other.path);
  }
}

bool RecordCache::Fetch(std::size_t file, const RecordPlace& place, std::span<std::uint8_t> bytes) {
  if (!file_.is_open()) return false;
  const support::Transfer got =
      support::ReadAt(file_.fd(), first_byte_[file] + place.offset, std::as_writable_bytes(bytes));
  const bool is_there = got.bytes == bytes.size() && ProblemOf(bytes).empty();
  (is_there ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
  return is_there;
}

// What others have is looked at now and then.
bool RecordCache::HasCapacity(std::uint64_t bytes) {
  if (polls_for_memory_.fetch_add(1) % kLooksForOthers == 0) bytes_of_others_ = BytesOfOthers();
  return OwnBytes() + bytes_of_others_ + bytes <= max_bytes_;
}

void RecordCache::Keep(std::size_t file, const RecordPlace& place,
                       std::span<const std::uint8_t> bytes) {
  if (!is_keeping_ || !ProblemOf(bytes).empty()) return;
  if (!HasCapacity(bytes.size())) {
    StopKeeping("it is full");
    return;
  }
  std::uint64_t offset = first_byte_[file] + place.offset;
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      StopKeeping(std::generic_category().message(written < 0 ? errno : ENOSPC));
      return;
    }
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void RecordCache::StopKeeping(const std::string& why) {
  is_keeping_ = false;
  const std::lock_guard lock(mutex_);
  if (note_.empty()) note_ = why;
}

RecordCacheUse RecordCache::use() const {
  const std::lock_guard lock(mutex_);
  return {path_.string(), SetBytes(), OwnBytes(), max_bytes_, hits_, misses_, note_};
}

}  // namespace trainer
