// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/child_environment.h"

#include "launcher/launch/variable_table.h"

namespace launcher {
bool IsRankIdentity(const std::string& name) { return FateOf(name) == Fate::kOfAnotherRank; }

bool IsForwarded(const std::string& name) { return !name.empty() && FateOf(name) == Fate::kKept; }

Environment EnvironmentForSrun(Environment environment) {
  std::erase_if(environment, [](const auto& variable) {
    const Fate fate = FateOf(variable.first);
    return fate == Fate::kOptionOfSrun || fate == Fate::kGpusOfSrun;
  });
  return environment;
}

Environment EnvironmentForMpirun(Environment environment) {
  std::erase_if(environment,
                [](const auto& variable) { return FateOf(variable.first) == Fate::kOptionOfSrun; });
  return environment;
}

}  // namespace launcher
