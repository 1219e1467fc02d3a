// SPDX-License-Identifier: Apache-2.0
//
// What every rank writes for other programs, each to a file of its own.

#pragma once

#include <optional>

#include "launcher/protocol/rank_environment.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/formats/prometheus_file.h"
#include "trainer/train/logging/log_dispatcher.h"

namespace trainer {

class RankOutputs {
 public:
  // Makes the directories.  Throws Error(EX_OSERR) that names the file or directory which cannot be
  // written, and its option; what is lost later is told to `log`.
  RankOutputs(const Options& options, const launcher::RankInfo& rank, const std::string& version,
              const Logger& log);
  // Says in the files that the run is over.
  ~RankOutputs();
  RankOutputs(const RankOutputs&) = delete;
  RankOutputs& operator=(const RankOutputs&) = delete;

  // `outputs` with pointers into this object.
  Outputs AddedTo(Outputs outputs);

 private:
  std::optional<PrometheusFile> prometheus_;
};

}  // namespace trainer
