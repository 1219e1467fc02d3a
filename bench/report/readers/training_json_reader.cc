// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/training_json_reader.h"

#include <cmath>
#include <string>
#include <system_error>

#include "bench/report/readers/logger_line.h"
#include "support/file.h"

namespace bench {
namespace {

using json = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxBytes = std::uintmax_t{64} * 1024 * 1024;

// The lists of a key in one row: [[1, 2], [3]] is [1, 2, 3].  What is no number is NaN.
std::vector<double> RowOf(const json& iterations, const char* key) {
  std::vector<double> row;
  const auto lists = iterations.find(key);
  if (lists == iterations.end() || !lists->is_array()) return row;
  for (const json& list : *lists) {
    if (!list.is_array()) continue;
    for (const json& value : list) {
      row.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
  }
  return row;
}

}  // namespace

void ReadTrainingJson(const std::filesystem::path& path, RunRecord& run, Diagnostics& diagnostics) {
  const support::WholeFile file = support::ReadWholeFile(path, kMaxBytes);
  using support::ReadProblem;
  if (file.problem == ReadProblem::kTooLong) {
    diagnostics.Problem(path.string() + ": more than 64 MiB are left out");
    return;
  }
  if (file.problem != ReadProblem::kNone) {
    const std::string why = file.problem == ReadProblem::kNotRegular
                                ? "it is no regular file"
                                : std::generic_category().message(file.error);
    diagnostics.Problem(path.string() + ": cannot be read: " + why, EX_NOINPUT);
    return;
  }
  const json whole = ParsePythonJson(file.content);
  const auto iterations = whole.is_object() ? whole.find("iter") : whole.end();
  if (!whole.is_object() || iterations == whole.end() || !iterations->is_object()) {
    diagnostics.Problem(path.string() + ": it is no training.json; it is left out");
    return;
  }
  const std::vector<double> steps = RowOf(*iterations, "iteration");
  const std::vector<double> speeds = RowOf(*iterations, "imgs_per_sec");
  const std::vector<double> losses = RowOf(*iterations, "cross_entropy");
  if (steps.size() != speeds.size() || steps.size() != losses.size()) {
    diagnostics.Problem(path.string() + ": its rows are of different lengths; it is left out");
    return;
  }
  RunMeasures& measures = run.measures;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    constexpr double kMaxStep = 1e15;
    if (!(steps[i] >= 0 && steps[i] <= kMaxStep) || !IsSpeed(speeds[i])) continue;
    AddStep(measures, static_cast<std::int64_t>(steps[i]), speeds[i]);
    AddLoss(measures, losses[i]);
  }
}

}  // namespace bench
