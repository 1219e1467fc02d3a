// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/option_values.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "launcher/protocol/launchers.h"
#include "launcher/protocol/rank_list.h"
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

std::optional<int> LargestRank(const std::string& list) {
  if (list == "all") return 0;
  if (list.empty() || list.size() > kMaxRankListBytes) return std::nullopt;
  int largest = 0;
  std::istringstream ranges(list + ",");
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t dash = range.find('-');
    int first = 0;
    int last = 0;
    if (!ParseCount(range.substr(0, dash), 0, &first).empty()) return std::nullopt;
    if (!ParseCount(dash == std::string::npos ? range : range.substr(dash + 1), 0, &last).empty() ||
        last < first) {
      return std::nullopt;
    }
    largest = std::max(largest, last);
  }
  return largest;
}

bool IsExport(const std::string& value) {
  const std::string name = value.substr(0, value.find('='));
  return !name.empty() && std::none_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isspace(c) != 0 || std::iscntrl(c) != 0;
  });
}

}  // namespace launcher
