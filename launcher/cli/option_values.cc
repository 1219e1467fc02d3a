// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/option_values.h"

#include <algorithm>
#include <cctype>

#include "launcher/protocol/launchers.h"
#include "support/number.h"

namespace launcher {

std::string ParseCount(const std::string& value, int min, int* count) {
  const std::optional<int> number = support::WholeNumber<int>(value);
  if (!number || *number < min || *number > kMaxCount) {
    return "a whole number from " + std::to_string(min) + " to " + std::to_string(kMaxCount);
  }
  *count = *number;
  return "";
}

std::string ParseCount(const std::string& value, int min, std::optional<int>* count) {
  int number = 0;
  const std::string expected = ParseCount(value, min, &number);
  if (expected.empty()) *count = number;
  return expected;
}

std::string OneOf(std::string& target, const std::string& value,
                  const std::vector<std::string>& choices) {
  std::string expected;
  for (const std::string& choice : choices) {
    if (value == choice) {
      target = value;
      return "";
    }
    expected += (expected.empty() ? "" : " or ") + choice;
  }
  return expected;
}

std::vector<std::string> LauncherNames() {
  std::vector<std::string> names = {"auto"};
  for (const LauncherTraits& launcher : kLaunchers) names.emplace_back(launcher.name);
  return names;
}

bool IsExport(const std::string& value) {
  const std::string name = value.substr(0, value.find('='));
  return !name.empty() && std::none_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isspace(c) != 0 || std::iscntrl(c) != 0;
  });
}

}  // namespace launcher
