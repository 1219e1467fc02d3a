// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/dlperf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "bench/base/statistics.h"
#include "bench/run_log/log_entry.h"
#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/python_format.h"

namespace bench {
namespace {

constexpr std::string_view kKey = " imgs_per_sec ";

// Two digits behind the point, rounded as Python does with a float it has read.
double PythonRound(double value) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return support::WholeNumber<double>(text.data()).value();
}

std::string TwoDigits(double value) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

// The number of " imgs_per_sec : 365.1 ": digits, any character, digits, a blank.
std::optional<double> RateOf(std::string_view line) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = line.find(kKey); at != std::string_view::npos;
       at = line.find(kKey, at + 1)) {
    std::string_view rest = line.substr(at + kKey.size());
    if (!rest.starts_with(": ")) continue;
    rest.remove_prefix(2);
    const std::size_t end = rest.find(' ');
    if (end == std::string_view::npos || end < 3) continue;
    const std::string_view word = rest.substr(0, end);
    if (!is_digit(word.front()) || !is_digit(word.back()) ||
        std::count_if(word.begin(), word.end(), [&](char c) { return !is_digit(c); }) > 1) {
      continue;
    }
    if (const auto number = NumberOf(word)) return number;
  }
  return std::nullopt;
}

std::vector<double> ValuesOf(const std::map<int, double>& speeds) {
  std::vector<double> values;
  for (const auto& [repeat, speed] : speeds) values.push_back(speed);
  return values;
}

}  // namespace

double NumpySum(std::span<const double> values) {
  constexpr std::size_t kLanes = 8;
  constexpr std::size_t kBlock = 128;
  const std::size_t count = values.size();
  if (count < kLanes) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (count > kBlock) {
    const std::size_t half = count / 2 - count / 2 % kLanes;
    return NumpySum(values.first(half)) + NumpySum(values.subspan(half));
  }
  std::array<double, kLanes> lanes{};
  const std::size_t whole = count - count % kLanes;
  for (std::size_t i = 0; i < whole; ++i) lanes[i % kLanes] += values[i];
  double sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
               ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  for (const double value : values.subspan(whole)) sum += value;
  return sum;
}

double NumpyRound(double value) { return std::nearbyint(value * 100) / 100; }

SpeedMeter::SpeedMeter(const SpeedWindow& window, std::int64_t batch)
    : window_(window), batch_(batch) {
  DDL_CHECK(window.warmup_steps >= kUnloggedSteps && window.steps > window.warmup_steps);
}

void SpeedMeter::Add(std::string_view line) {
  if (is_full()) return;
  if (line.find(kKey) == std::string_view::npos) {
    if (window_.rule == SpeedRule::kTime) AddOptions(line);
    return;
  }
  const auto rate = RateOf(line);
  if (!rate) {
    throw trainer::Error(EX_DATAERR, "imgs_per_sec is not followed by a number such as 365.1");
  }
  if (window_.rule == SpeedRule::kTime) {
    const auto time = MicrosecondsOf(line);
    if (!time) {
      throw trainer::Error(EX_DATAERR, "there is no time such as 2020-07-01 10:00:00.123456");
    }
    if (lines_ == first()) start_time_ = *time;
    end_time_ = *time;
  } else if (lines_ >= first()) {
    speeds_.push_back(PythonRound(*rate));
  }
  ++lines_;
}

void SpeedMeter::AddOptions(std::string_view line) {
  const LogEntry entry = ParseLogEntry(line);
  if (entry.kind != EntryKind::kDllOptions) return;
  const auto batches = BatchesOfStep(entry);
  if (!batches) {
    throw trainer::Error(EX_DATAERR, "accumulate is '" +
                                         std::string(ValueOf(entry, "accumulate").value_or("")) +
                                         "', which is not a number of batches");
  }
  batches_ = *batches;
  fixed_ = FixedGlobalBatch(entry);
}

std::optional<double> SpeedMeter::Speed() const {
  DDL_CHECK(is_full());
  if (window_.rule == SpeedRule::kRate) {
    return NumpyRound(NumpySum(speeds_) / static_cast<double>(speeds_.size()));
  }
  const double seconds = static_cast<double>(end_time_ - start_time_) / 1e6;
  if (seconds <= 0) return std::nullopt;
  const double seconds_per_step = seconds / (needed() - first() - 1);
  const auto global_batch = static_cast<double>(fixed_.value_or(batch_ * batches_));
  return NumpyRound(global_batch / seconds_per_step);
}

std::vector<CaseSpeed> SpeedsOf(const ModelRuns& runs) {
  std::vector<CaseSpeed> rows;
  for (const auto& [name, repeats] : runs) {
    CaseSpeed row;
    row.name = name;
    row.batch = repeats.batch;
    row.runs = static_cast<int>(repeats.speeds.size());
    const std::vector<double> values = ValuesOf(repeats.speeds);
    double sum = 0;
    for (const double value : values) sum += value;
    row.average = NumpyRound(sum / static_cast<double>(values.size()));
    row.median = NumpyRound(MedianOf(values));
    rows.push_back(row);
  }
  const auto single = std::find_if(rows.begin(), rows.end(), [](const CaseSpeed& row) {
    return row.name == Case{1, 1};
  });
  if (single == rows.end() || single->median == 0) return rows;
  const double base = single->median;
  for (CaseSpeed& row : rows) row.speedup = NumpyRound(row.median / base);
  return rows;
}

std::string FormatJson(const ModelSpeeds& models) {
  std::string text = "{";
  for (const auto& [model, rows] : models) {
    if (text.size() > 1) text += ", ";
    text.append(trainer::PythonJson(model)).append(": {");
    for (const CaseSpeed& row : rows) {
      if (&row != &rows.front()) text += ", ";
      text.append(trainer::PythonJson(NameOf(row.name)))
          .append(": {\"average_speed\": ")
          .append(trainer::PythonFloat(row.average))
          .append(", \"batch_size_per_device\": ")
          .append(std::to_string(row.batch))
          .append(", \"median_speed\": ")
          .append(trainer::PythonFloat(row.median));
      if (row.speedup) text.append(", \"speedup\": ").append(trainer::PythonFloat(*row.speedup));
      text += "}";
    }
    text += "}";
  }
  return text + "}";
}

std::string FormatTable(const std::vector<CaseSpeed>& rows) {
  std::string text =
      "| node_num | gpu_num | samples/s | speedup | average   | runs | batch |\n"
      "| -------- | ------- | --------- | ------- | --------- | ---- | ----- |\n";
  for (const CaseSpeed& row : rows) {
    std::array<char, 1200> line{};
    std::snprintf(line.data(), line.size(),
                  "| %-8d | %-7d | %-9s | %-7s | %-9s | %-4d | %-5lld |\n", row.name.nodes,
                  row.name.ranks(), TwoDigits(row.median).c_str(),
                  row.speedup ? TwoDigits(*row.speedup).c_str() : "-",
                  TwoDigits(row.average).c_str(), row.runs, static_cast<long long>(row.batch));
    text += line.data();
  }
  return text;
}

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
