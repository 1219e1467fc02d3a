// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/child_environment.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "launcher/spawn/variable_table.h"

namespace launcher {
namespace {

bool IsIdentifier(std::string_view name) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_part);
}

}  // namespace

bool IsRankIdentity(const std::string& name) { return FateOf(name) == Fate::kOfAnotherRank; }

bool IsForwarded(const std::string& name) {
  return IsIdentifier(name) && FateOf(name) == Fate::kKept;
}

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
