// SPDX-License-Identifier: Apache-2.0

#include "ddldata/shard_directory.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/thread.h"
#include "trainer/data/files/data_files.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxConversionBytes = 1U << 16;

bool IsDataFileName(std::string_view name) {
  return name.starts_with(FilePrefix(Split::kTrain)) ||
         name.starts_with(FilePrefix(Split::kValidation));
}

// What a process that was killed had begun.  REQUIRES: the directory is locked.
void RemoveBegunFiles(const std::string& dir) {
  std::error_code ignored;
  for (fs::directory_iterator entry(dir, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    const bool is_ours = name.starts_with('.') && IsDataFileName(std::string_view(name).substr(1));
    std::error_code gone;
    if (is_ours && name.ends_with(".tmp")) fs::remove(entry->path(), gone);
  }
}

std::string_view TakeLineOf(std::string_view& text) {
  const std::size_t length = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

}  // namespace

void RequireOption(bool condition, const std::string& message) {
  if (!condition) throw Error(EX_USAGE, message);
}

std::string ShardName(Split split, int shard, int shards) {
  std::array<char, 32> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%05d-of-%05d", shard, shards);
  return FilePrefix(split) + numbers.data();
}

std::set<std::string> DataFileNames(const std::string& dir) {
  std::set<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (IsDataFileName(name)) names.insert(std::move(name));
  }
  if (error) throw OsError("cannot read the directory " + dir, error.value());
  return names;
}

ShardDirectory::ShardDirectory(std::string dir) : dir_(std::move(dir)) {
  MakeDirectories(dir_);
  lock_ = support::Descriptor(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.is_open()) throw OsError("cannot open the directory " + dir_, errno);
  if (::flock(lock_.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw Error(EX_CONFIG,
                "another ddldata writes to " + dir_ + ": wait for it, or give another directory");
  }
}

std::vector<std::size_t> ShardDirectory::MissingFiles(const std::string& description,
                                                      std::span<const std::string> names) {
  const std::string path = (fs::path(dir_) / kConversionName).string();
  std::set<std::string> there = DataFileNames(dir_);
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    const std::string difference =
        CompareConversions(ReadWholeFile(path, kMaxConversionBytes), description);
    if (!difference.empty()) {
      throw Error(EX_USAGE,
                  dir_ + " is of another conversion: " + difference +
                      "; give the same options and images again, or another directory, or "
                      "empty this one");
    }
  } else if (!there.empty()) {
    throw Error(EX_USAGE, dir_ + " already has data files (" + std::to_string(there.size()) +
                              ", one is " + *there.begin() +
                              ") that no conversion has written: give another directory");
  } else {
    WriteWholeFile(path, description);
  }
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (there.erase(names[i]) == 0) missing.push_back(i);
  }
  if (!there.empty()) {
    throw Error(EX_USAGE, dir_ + " has the file " + *there.begin() +
                              ", which is none of this conversion: take it out");
  }
  RemoveBegunFiles(dir_);
  return missing;
}

void ShardMaking::StopIfRequested() const {
  if (!stop_requested_()) return;
  throw Error(EX_TEMPFAIL, "stopped by a signal; what is whole stays in " + dir_ +
                               ", and the same command continues with the rest");
}

void ShardMaking::WriteFiles(std::span<const std::size_t> files,
                             const std::function<void(std::size_t)>& write) {
  ParallelFor(threads_, std::ssize(files), [&](std::int64_t i) {
    try {
      if (!failed_) write(files[static_cast<std::size_t>(i)]);
    } catch (const Error& error) {
      failed_ = true;
      if (error.exit_code() != EX_OSERR) throw;
      throw Error(EX_OSERR,
                  std::string(error.what()) +
                      "; what is whole stays, and the same command continues with the rest");
    }
  });
  StopIfRequested();
}

std::string CompareConversions(std::string_view there, std::string_view now) {
  while (!there.empty() || !now.empty()) {
    const std::string_view was = TakeLineOf(there);
    const std::string_view is = TakeLineOf(now);
    if (was != is) {
      return "there it is \"" + std::string(was) + "\", now it would be \"" + std::string(is) +
             "\"";
    }
  }
  return "";
}

}  // namespace trainer
