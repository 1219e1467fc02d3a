// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/plan_cache_file.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "support/file.h"
#include "support/format_version.h"

namespace trainer {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;

std::string WhyNotRead(const support::WholeFile& file) {
  if (file.problem == support::ReadProblem::kNone) return "its checksum is wrong";
  if (file.problem == support::ReadProblem::kTooLong) return "it is longer than 16 MiB";
  if (file.problem == support::ReadProblem::kNotRegular) return "it is no regular file";
  return std::strerror(file.error);
}

}  // namespace

std::filesystem::path PlanPath(const Options& options) {
  if (options.plan_cache == "off") return {};
  if (options.plan_cache != "auto") return options.plan_cache;
  if (!KeepsWeights(options.mode)) return {};
  return ModelDirectory(options) / "plans.txt";
}

PlanCacheFile::PlanCacheFile(std::filesystem::path path, Logger log)
    : path_(std::move(path)),
      log_(std::move(log)),
      plans_(std::make_shared<PlanCache>()),
      can_write_(!path_.empty()) {
  if (path_.empty()) return;
  const support::WholeFile file = support::ReadWholeFile(path_, kMaxBytes);
  if (file.problem == support::ReadProblem::kOpen && file.error == ENOENT) return;
  if (file.problem == support::ReadProblem::kNone && plans_->Read(file.content)) return;
  const int format = support::FormatVersion(file.content, kPlanBeginning).value_or(0);
  if (format > kPlanFormat) {
    can_write_ = false;
    log_->warn("cannot read {} (--plan_cache): {}; this run times algorithms and keeps nothing",
               path_.string(), support::DescribeNewerFormat("plans", format, kPlanFormat));
    return;
  }
  log_->warn("cannot read {} (--plan_cache): {}; algorithms are timed again", path_.string(),
             WhyNotRead(file));
}

void PlanCacheFile::Keep() {
  if (!can_write_) return;
  const std::optional<std::string> text = plans_->TakeNewEntries();
  if (!text) return;
  const int error = support::ReplaceFile(path_, *text);
  if (error == 0) return;
  can_write_ = false;
  log_->warn("cannot write {} (--plan_cache): {}; the next start times algorithms again",
             path_.string(), std::strerror(error));
}

}  // namespace trainer
