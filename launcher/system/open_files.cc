// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/open_files.h"

#include <sys/resource.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "launcher/base/error.h"

namespace launcher {
namespace {

// Before this process raised it.
std::optional<rlimit> original;

std::size_t CountOpenFiles() {
  std::size_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

void ReserveOpenFiles(std::size_t more, const std::string& what) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const std::size_t needed = CountOpenFiles() + more;
  if (needed <= limit.rlim_cur) return;
  if (needed > limit.rlim_max) {
    throw LaunchError(EX_OSERR, what + " need " + std::to_string(needed) +
                                    " open files, and this process may have " +
                                    std::to_string(limit.rlim_max) +
                                    ": fewer ranks, or a higher hard limit (ulimit -Hn; nofile in "
                                    "limits.conf, LimitNOFILE for slurmd), so that ulimit -n " +
                                    std::to_string(needed) + " works");
  }
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw OsError("cannot raise ulimit -n");
  if (!original) original = before;
}

void RestoreOpenFileLimit() {
  if (original) setrlimit(RLIMIT_NOFILE, &*original);
}

}  // namespace launcher
