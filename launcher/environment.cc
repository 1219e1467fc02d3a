// SPDX-License-Identifier: Apache-2.0

#include "launcher/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "launcher/variable_table.h"

namespace launcher {
namespace {

bool IsIdentifier(std::string_view name) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_part);
}

}  // namespace

Environment SnapshotEnvironment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> ToStrings(const Environment& environment) {
  std::vector<std::string> strings;
  strings.reserve(environment.size());
  for (const auto& [name, value] : environment) strings.push_back(name + "=" + value);
  return strings;
}

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
