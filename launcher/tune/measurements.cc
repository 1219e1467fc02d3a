// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/measurements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "support/number.h"

namespace launcher {
namespace {

// The columns of nccl-tests: size count type redop root, then time, algbw, busbw and #wrong of sums
// out of place, which ddlbench has none of, then those of sums in place.
constexpr std::size_t kColumns = 13;
constexpr std::size_t kTime = 9;
constexpr std::size_t kWrong = 12;

}  // namespace

std::vector<SizeTime> ParseAllReduce(const std::string& text) {
  std::vector<SizeTime> times;
  bool is_whole = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    is_whole = is_whole || line.starts_with("# Avg bus bandwidth");
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.size() != kColumns || words[3] != "sum") continue;
    const auto bytes = support::WholeNumber<long long>(words[0]);
    const auto time = support::WholeNumber<double>(words[kTime]);
    if (!bytes || !time || *time <= 0) continue;
    if (words[kWrong] != "0") return {};
    times.push_back({*bytes, *time});
  }
  return is_whole ? times : std::vector<SizeTime>();
}

bool IsOfNccl(const std::string& text) {
  return text.find("# ddlbench allreduce: NCCL") != std::string::npos;
}

double ScoreOf(const std::vector<SizeTime>& times) {
  double sum = 0;
  for (const SizeTime& time : times) sum += std::log(time.microseconds);
  return std::exp(sum / static_cast<double>(times.size()));
}

Summary Summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const std::size_t left_out = count >= 5 ? 1 : 0;
  const double median =
      count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
  return {median, values[count - 1 - left_out] - values[left_out]};
}

bool IsBetter(const Summary& candidate, const Summary& reference) {
  const double gain = reference.median - candidate.median;
  return gain > std::max(candidate.spread, reference.spread) && gain > kMinGain * reference.median;
}

std::string MicrosecondsText(double microseconds) {
  std::array<char, 64> text = {};
  const bool is_small = microseconds < 1e3;
  const bool is_large = microseconds >= 1e6;
  const double number = microseconds / (is_small ? 1 : is_large ? 1e6 : 1e3);
  std::snprintf(text.data(), text.size(), "%.*f %s",
                number < 10    ? 2
                : number < 100 ? 1
                               : 0,
                number,
                is_small   ? "us"
                : is_large ? "s"
                           : "ms");
  return text.data();
}

std::string SummaryText(const Summary& summary) {
  return MicrosecondsText(summary.median) + " (scatter " + MicrosecondsText(summary.spread) + ")";
}

}  // namespace launcher
