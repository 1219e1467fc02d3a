// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/run_names.h"

#include <charconv>
#include <tuple>

namespace bench {
namespace {

// The number that is all of `text`, 1 to `max`.
template <typename Number>
std::optional<Number> Positive(std::string_view text, Number max) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end || number < 1 || number > max) {
    return std::nullopt;
  }
  return number;
}

// What stands before the next `mark`, which is taken too; nothing when there is none.
std::optional<std::string_view> TakeUntil(std::string_view& text, char mark) {
  const std::size_t end = text.find(mark);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end + 1);
  return part;
}

}  // namespace

bool operator<(const Case& a, const Case& b) {
  return std::tuple(a.ranks(), a.nodes) < std::tuple(b.ranks(), b.nodes);
}

std::string NameOf(const Case& name) {
  return std::to_string(name.nodes) + "n" + std::to_string(name.gpus) + "g";
}

std::optional<Case> ParseCase(std::string_view text) {
  constexpr int kMax = 9999;
  const auto nodes = TakeUntil(text, 'n');
  const auto gpus = TakeUntil(text, 'g');
  if (!nodes || !gpus || !text.empty()) return std::nullopt;
  const auto node_count = Positive(*nodes, kMax);
  const auto gpu_count = Positive(*gpus, kMax);
  if (!node_count || !gpu_count) return std::nullopt;
  return Case{*node_count, *gpu_count};
}

bool FitsDlperf(const Case& name) { return name.nodes <= 9 && name.gpus <= 99; }

std::string FileNameOf(const RunName& name) {
  return name.model + "_b" + std::to_string(name.batch) + "_" + name.precision + "_" +
         std::to_string(name.repeat) + ".log";
}

std::optional<RunName> ParseRunName(std::string_view text) {
  constexpr std::int64_t kMaxBatch = 1'000'000'000;
  constexpr int kMaxRepeat = 1'000'000;
  const auto model = TakeUntil(text, '_');
  const auto batch = TakeUntil(text, '_');
  const auto precision = TakeUntil(text, '_');
  if (!model || model->empty() || !batch || !batch->starts_with('b') || !precision ||
      precision->empty() || !text.ends_with(".log")) {
    return std::nullopt;
  }
  const auto images = Positive(batch->substr(1), kMaxBatch);
  const auto repeat = Positive(text.substr(0, text.size() - 4), kMaxRepeat);
  if (!images || !repeat) return std::nullopt;
  return RunName{std::string(*model), *images, std::string(*precision), *repeat};
}

}  // namespace bench
