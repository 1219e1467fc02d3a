// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace trainer {
namespace {

constexpr std::size_t kOtherFiles = 1024;
constexpr rlim_t kMaxFiles = 1u << 20;  // more is unlimited

std::size_t CountOpenFiles() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    ++count;
  }
  return error ? 0 : count;
}

}  // namespace

OpenFileBudget BudgetOpenFiles(const OpenFileLimits& limits, std::size_t wanted) {
  const std::size_t need = limits.open + wanted + kOtherFiles;
  const std::size_t soft = std::max(limits.soft, std::min(need, limits.hard));
  const std::size_t taken = limits.open + std::min(kOtherFiles, soft / 2);
  return {soft, std::min(wanted, soft > taken ? soft - taken : 0)};
}

std::size_t RaiseOpenFileLimit(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  OpenFileLimits limits = {std::min(limit.rlim_cur, kMaxFiles), std::min(limit.rlim_max, kMaxFiles),
                           CountOpenFiles()};
  OpenFileBudget plan = BudgetOpenFiles(limits, wanted);
  if (plan.soft > limits.soft) {
    limit.rlim_cur = plan.soft;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      limits.hard = limits.soft;
      plan = BudgetOpenFiles(limits, wanted);
    }
  }
  return plan.files;
}

}  // namespace trainer
