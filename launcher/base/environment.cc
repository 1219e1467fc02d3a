// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/environment.h"

#include <unistd.h>

#include <string_view>

namespace launcher {

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

std::string ValueOr(const Environment& environment, const std::string& name,
                    const std::string& fallback) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? fallback : found->second;
}

Environment WithoutDefaultsOfSlurmTools(Environment environment) {
  std::erase_if(environment, [](const auto& variable) {
    return variable.first.starts_with("SCANCEL_") || variable.first.starts_with("SQUEUE_");
  });
  return environment;
}

}  // namespace launcher
