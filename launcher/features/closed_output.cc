// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/closed_output.h"

namespace launcher {
namespace {

std::unique_ptr<JobWatcher> WatchClosedOutput(const JobRun& /*run*/) {
  return std::make_unique<ClosedOutput>();
}

}  // namespace

const Feature kClosedOutput = {nullptr, nullptr, WatchClosedOutput};

void ClosedOutput::Poll(WatchedJob& job) {
  if (!job.IsOutputClosed() || !job.IsRunning() || job.IsStopRequested()) return;
  job.End({.kind = OwnEnd::Kind::kClosedOutput,
           .exit_code = 128 + SIGPIPE,
           .text = "nobody reads the output any more, so the job was ended"});
}

}  // namespace launcher
