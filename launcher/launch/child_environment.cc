// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/child_environment.h"

#include "launcher/launch/variable_table.h"

namespace launcher {
bool IsRankIdentity(const std::string& name) {
  return ExportPolicyOf(name) == ExportPolicy::kOfAnotherRank;
}

bool IsForwarded(const std::string& name) {
  return !name.empty() && ExportPolicyOf(name) == ExportPolicy::kKept;
}

Environment EnvironmentForSrun(Environment environment) {
  std::erase_if(environment, [](const auto& variable) {
    const ExportPolicy policy = ExportPolicyOf(variable.first);
    return policy == ExportPolicy::kOptionOfSrun || policy == ExportPolicy::kGpusOfSrun;
  });
  return environment;
}

Environment EnvironmentForMpirun(Environment environment) {
  std::erase_if(environment, [](const auto& variable) {
    return ExportPolicyOf(variable.first) == ExportPolicy::kOptionOfSrun;
  });
  return environment;
}

}  // namespace launcher
