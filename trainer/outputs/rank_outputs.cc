// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/rank_outputs.h"

#include "trainer/checkpoint/names.h"
#include "trainer/outputs/log_file.h"
#include "trainer/outputs/run_directories.h"

namespace trainer {

RankOutputs::RankOutputs(const Options& options, const launcher::RankInfo& rank,
                         const std::string& version, const Logger& log) {
  if (options.prometheus_dir.empty()) return;
  MakeDirectory(options.prometheus_dir, "--prometheus_dir");
  const MetricsOwner owner = {rank.rank, rank.host.empty() ? HostName() : rank.host, version};
  prometheus_.emplace(options.prometheus_dir, owner, LogOldText(log, options.prometheus_dir));
  if (const int failure = prometheus_->Start(); failure != 0) {
    RejectFile(prometheus_->path(), failure, "another --prometheus_dir");
  }
}

RankOutputs::~RankOutputs() {
  if (prometheus_) prometheus_->End();
}

Outputs RankOutputs::AddedTo(Outputs outputs) {
  if (prometheus_) outputs.logs.push_back(&*prometheus_);
  return outputs;
}

}  // namespace trainer
