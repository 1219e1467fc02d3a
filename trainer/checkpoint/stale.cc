// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/stale.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <vector>

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kPartial[] = ".partial-";

// The number alone is of a version that did not write the host: of this one, as far as is known.
std::optional<TemporaryOwner> OwnerOfPartial(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string rest = name.substr(prefix.size());
  return ParseOwner(rest.find('-') == std::string::npos ? HostName() + "-" + rest : rest);
}

}  // namespace

bool IsStale(const fs::path& path, const TemporaryOwner& owner) {
  if (owner.host == HostName() && ::kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) {
    return true;
  }
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  fs::file_time_type newest = fs::last_write_time(path, error);
  if (!error && fs::is_directory(path, error)) {
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      newest = std::max(newest, entry->last_write_time(error));
      if (error) break;
    }
  }
  return !error && now - newest > std::chrono::hours(1);
}

fs::path PartialName(const fs::path& path) {
  fs::path partial = path;
  partial += kPartial + HostName() + "-" + std::to_string(::getpid());
  return partial;
}

int RemoveStalePartials(const fs::path& path) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const std::string prefix = path.filename().string() + kPartial;
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto owner = OwnerOfPartial(entry->path().filename().string(), prefix);
    if (owner && IsStale(entry->path(), *owner)) stale.push_back(entry->path());
  }
  int removed = 0;
  for (const fs::path& one : stale) {
    if (fs::remove(one, error)) ++removed;
  }
  return removed;
}

}  // namespace trainer
