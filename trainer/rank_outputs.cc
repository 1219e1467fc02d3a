// SPDX-License-Identifier: Apache-2.0

#include "trainer/rank_outputs.h"

#include <filesystem>
#include <system_error>

#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"
#include "trainer/log_file.h"

namespace trainer {
namespace {

[[noreturn]] void RefusePrometheus(const std::filesystem::path& path, const std::error_code& why) {
  throw Error(EX_OSERR, "cannot write '" + path.string() + "': " + why.message() +
                            "; check it, or give another --prometheus_dir");
}

}  // namespace

RankOutputs::RankOutputs(const Options& options, const launcher::RankInfo& rank,
                         const std::string& version, const Logger& log) {
  if (options.prometheus_dir.empty()) return;
  const std::filesystem::path folder = options.prometheus_dir;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) RefusePrometheus(folder, error);
  const MetricsOwner owner = {rank.rank, rank.host.empty() ? HostName() : rank.host, version};
  prometheus_.emplace(folder, owner, TellOldText(log, options.prometheus_dir));
  if (const int failure = prometheus_->Start(); failure != 0) {
    RefusePrometheus(prometheus_->path(), {failure, std::generic_category()});
  }
}

RankOutputs::~RankOutputs() {
  if (prometheus_) prometheus_->End();
}

Outputs RankOutputs::AddedTo(Outputs outputs) {
  outputs.prometheus = prometheus_ ? &*prometheus_ : nullptr;
  return outputs;
}

}  // namespace trainer
