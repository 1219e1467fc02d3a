// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/query_mpirun.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kTimeoutWithMpirun{30};

}  // namespace

std::unique_ptr<CommandOutput> QueryMpirun(const std::string& mpirun,
                                           const Environment& environment) {
  if (mpirun.empty()) return nullptr;
  return std::make_unique<CommandOutput>(std::vector<std::string>{mpirun, "--version"},
                                         environment);
}

MpirunVersion AnswerOfMpirun(CommandOutput* requested) {
  // What it prints counts, whatever its exit code.
  requested->Wait(kTimeoutWithMpirun);
  return ParseMpirunVersion(requested->text());
}

}  // namespace launcher
