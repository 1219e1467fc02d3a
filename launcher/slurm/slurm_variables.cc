// SPDX-License-Identifier: Apache-2.0
#include "launcher/slurm/slurm_variables.h"

#include <algorithm>
#include <string_view>

#include "launcher/allocation/allocation.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "rankfile/hostlist.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr std::size_t kMaxShown = 120;
constexpr int kMaxGpus = 1 << 20;  // more GPUs of a job are taken for a mistake

[[noreturn]] void Reject(const std::string& name, const std::string& value,
                         const std::string& example) {
  throw LaunchError(EX_CONFIG, Show(name, value) + " is not in Slurm's form, such as " + example);
}

bool ParseWhole(std::string_view text, int* number) {
  *number = support::WholeNumber<int>(text).value_or(-1);
  return *number >= 0;
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

std::optional<std::string> FindVariable(const Environment& environment, const std::string& name) {
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

void Contradict(const std::string& left, const std::string& right, const std::string& hint) {
  throw LaunchError(EX_CONFIG, left + " contradicts " + right + ": " + hint + kMaybeInherited);
}

std::optional<int> TryParseCount(const std::string& value) {
  int number = 0;
  if (!ParseWhole(value, &number)) return std::nullopt;
  return number;
}

int ParseCount(const std::string& name, const std::string& value) {
  const std::optional<int> number = TryParseCount(value);
  if (!number) Reject(name, value, name + "=4");
  return *number;
}

std::optional<std::vector<int>> TryParseCountList(const std::string& value) {
  std::vector<int> counts;
  for (std::string_view part : SplitAtCommas(value)) {
    int repeat = 1;
    if (const std::size_t open = part.find("(x"); open != std::string_view::npos) {
      if (part.back() != ')') return std::nullopt;
      const std::string_view times = part.substr(open + 2, part.size() - open - 3);
      if (!ParseWhole(times, &repeat) || repeat == 0) return std::nullopt;
      part = part.substr(0, open);
    }
    int count = 0;
    if (!ParseWhole(part, &count)) return std::nullopt;
    if (static_cast<std::size_t>(repeat) > rankfile::kMaxHosts - counts.size()) return std::nullopt;
    counts.insert(counts.end(), static_cast<std::size_t>(repeat), count);
  }
  return counts;
}

std::optional<int> TryParseGpuCount(const std::string& value) {
  int sum = 0;
  for (const std::string_view part : SplitAtCommas(value)) {
    int count = 0;
    // Without a type in front rfind gives npos, and npos + 1 is 0, so that the whole part is read.
    if (!ParseWhole(part.substr(part.rfind(':') + 1), &count) || count > kMaxGpus ||
        sum > kMaxGpus) {
      return std::nullopt;
    }
    sum += count;
  }
  return sum;
}

TresPerTask ParseTresPerTask(const std::string& value) {
  TresPerTask tres;
  for (const std::string_view part : SplitAtCommas(value)) {
    const std::size_t separator = part.find_last_of("=:");
    int count = 0;
    if (separator == std::string_view::npos || !ParseWhole(part.substr(separator + 1), &count) ||
        count > kMaxGpus) {
      continue;
    }
    const std::string_view name = part.substr(0, separator);
    if (name == "cpu") tres.cpus = count;
    for (const std::string_view gpu : {"gres/gpu", "gres:gpu"}) {
      const bool is_gpu = name == gpu || (name.starts_with(gpu) && name[gpu.size()] == ':');
      if (is_gpu) tres.gpus = tres.gpus.value_or(0) + count;
    }
  }
  return tres;
}

std::vector<int> ParseIndices(const std::string& value) {
  std::vector<int> indices;
  for (const std::string_view part : SplitAtCommas(value)) {
    const std::size_t dash = part.find('-');
    int first = 0;
    if (!ParseWhole(part.substr(0, dash), &first)) return {};
    int last = first;
    if (dash != std::string_view::npos && !ParseWhole(part.substr(dash + 1), &last)) return {};
    if (last >= kMaxGpusPerNode || first > last) return {};
    for (int i = first; i <= last; ++i) indices.push_back(i);
  }
  std::sort(indices.begin(), indices.end());
  if (std::adjacent_find(indices.begin(), indices.end()) != indices.end()) return {};
  return indices;
}

}  // namespace launcher
