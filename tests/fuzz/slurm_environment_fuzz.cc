// SPDX-License-Identifier: Apache-2.0
//
// NAME=value lines as the environment of a job: read or refused, and what is read can be planned.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "launcher/base/error.h"
#include "launcher/plan/plan_check.h"
#include "launcher/plan/planner.h"
#include "launcher/slurm/slurm_allocation.h"

namespace {

// More nodes or ranks only take longer.
constexpr std::size_t kMaxPlannedNodes = 64;
constexpr int kMaxPlannedRanks = 1024;

launcher::Environment ToEnvironment(const std::string& text) {
  launcher::Environment environment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return environment;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    const auto allocation = launcher::ReadSlurmAllocation(
        ToEnvironment(std::string(reinterpret_cast<const char*>(data), size)));
    if (!allocation || allocation->nodes.size() > kMaxPlannedNodes ||
        allocation->ranks.value_or(0) > kMaxPlannedRanks) {
      return 0;
    }
    const launcher::Plan plan = launcher::MakePlan(*allocation, {}, {});
    if (!launcher::FindPlanError(plan, false).empty()) std::abort();
  } catch (const launcher::LaunchError&) {
    return 0;
  }
  return 0;
}
