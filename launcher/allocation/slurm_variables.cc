// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/slurm_variables.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "launcher/allocation/allocation.h"
#include "launcher/error.h"
#include "rankfile/hostlist.h"

namespace launcher {
namespace {

constexpr std::size_t kMaxShown = 120;
constexpr int kMaxGpus = 1 << 20;  // of a job

[[noreturn]] void Refuse(const std::string& name, const std::string& value,
                         const std::string& example) {
  throw LaunchError(EX_CONFIG, Show(name, value) + " is not in Slurm's form, such as " + example);
}

bool ParseWhole(std::string_view text, int* number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && stop == text.data() + text.size() && *number >= 0;
}

// The parts of `text` between commas; "" has one empty part.
std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<std::string> FindVariable(const EnvironmentMap& environment,
                                        const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  if (found->second.size() > kMaxVariableBytes) {
    throw LaunchError(EX_CONFIG, name + " has " + std::to_string(found->second.size()) +
                                     " bytes; at most " + std::to_string(kMaxVariableBytes) +
                                     " are read");
  }
  return found->second;
}

std::string Show(const std::string& name, const std::string& value) {
  std::string shown = value.substr(0, kMaxShown);
  // Messages are one line of plain text, whatever the variable holds.
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name + "=" + shown + (value.size() > kMaxShown ? "..." : "");
}

int ParseCount(const std::string& name, const std::string& value) {
  int number = 0;
  if (!ParseWhole(value, &number)) Refuse(name, value, name + "=4");
  return number;
}

std::vector<int> ParseCountList(const std::string& name, const std::string& value) {
  const auto refuse = [&] { Refuse(name, value, name + "=8(x2),3"); };
  std::vector<int> counts;
  for (std::string_view part : SplitAtCommas(value)) {
    int repeat = 1;
    if (const std::size_t open = part.find("(x"); open != std::string_view::npos) {
      if (part.back() != ')') refuse();
      const std::string_view times = part.substr(open + 2, part.size() - open - 3);
      if (!ParseWhole(times, &repeat) || repeat == 0) refuse();
      part = part.substr(0, open);
    }
    int count = 0;
    if (!ParseWhole(part, &count)) refuse();
    if (static_cast<std::size_t>(repeat) > rankfile::kMaxHosts - counts.size()) refuse();
    counts.insert(counts.end(), static_cast<std::size_t>(repeat), count);
  }
  return counts;
}

int ParseGpuCount(const std::string& name, const std::string& value) {
  int sum = 0;
  for (const std::string_view part : SplitAtCommas(value)) {
    int count = 0;
    // npos + 1 is 0: the whole part where there is no type in front.
    if (!ParseWhole(part.substr(part.rfind(':') + 1), &count) || count > kMaxGpus ||
        sum > kMaxGpus) {
      Refuse(name, value, name + "=4 or " + name + "=v100:4");
    }
    sum += count;
  }
  return sum;
}

std::vector<int> ParseIndices(const std::string& name, const std::string& value) {
  std::vector<int> indices;
  for (const std::string_view part : SplitAtCommas(value)) {
    const std::size_t dash = part.find('-');
    int first = 0;
    int last = 0;
    if (!ParseWhole(part.substr(0, dash), &first)) return {};
    if (dash == std::string_view::npos) {
      last = first;
    } else if (!ParseWhole(part.substr(dash + 1), &last)) {
      return {};
    }
    if (last >= kMaxGpusPerNode || first > last) Refuse(name, value, name + "=0,1,2,3");
    for (int i = first; i <= last; ++i) indices.push_back(i);
  }
  std::sort(indices.begin(), indices.end());
  if (std::adjacent_find(indices.begin(), indices.end()) != indices.end()) {
    Refuse(name, value, name + "=0,1,2,3");
  }
  return indices;
}

}  // namespace launcher
