// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/inherited_variables.h"

#include <algorithm>

namespace launcher {

Environment WithoutInheritedComponents(Environment environment) {
  const std::string job = ValueOr(environment, "SLURM_JOB_ID", "");
  const bool is_own =
      std::any_of(environment.begin(), environment.end(), [&](const auto& variable) {
        return variable.first.starts_with("SLURM_JOB_ID_HET_GROUP_") && variable.second == job;
      });
  if (is_own) return environment;
  std::erase_if(environment, [](const auto& variable) {
    return variable.first == "SLURM_HET_SIZE" ||
           (variable.first.starts_with("SLURM_") &&
            variable.first.find("_HET_GROUP_") != std::string::npos);
  });
  return environment;
}

}  // namespace launcher
