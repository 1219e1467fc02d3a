// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/variability.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <span>

#include "bench/base/statistics.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/python_format.h"

namespace bench {
namespace {

using trainer::LogFields;
using trainer::PythonJson;

// The median over the runs that tell it.
std::optional<double> MedianOver(const RunsOfDevice& runs,
                                 std::optional<double> DeviceRun::*figure) {
  std::vector<double> logged;
  for (const auto& [time, run] : runs) {
    if (run.*figure) logged.push_back(*(run.*figure));
  }
  return logged.empty() ? std::nullopt : std::optional(MedianOf(logged));
}

DeviceVariability DeviceOf(const DevicePlace& place, const RunsOfDevice& runs) {
  DeviceVariability device;
  device.place = place;
  device.runs = runs.size();
  std::vector<double> means;
  for (const auto& [time, run] : runs) {
    const auto& all = run.durations;
    DDL_CHECK(!all.empty());
    means.push_back(std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()));
    const auto [min, max] = std::minmax_element(all.begin(), all.end());
    const bool is_first = means.size() == 1;
    device.min_seconds = is_first ? *min : std::min(device.min_seconds, *min);
    device.max_seconds = is_first ? *max : std::max(device.max_seconds, *max);
  }
  device.seconds = MedianOf(means);
  const auto [min, max] = std::minmax_element(means.begin(), means.end());
  device.repeat_spread = (*max - *min) / device.seconds;
  device.mhz = MedianOver(runs, &DeviceRun::mhz);
  device.celsius = MedianOver(runs, &DeviceRun::celsius);
  device.watts = MedianOver(runs, &DeviceRun::watts);
  return device;
}

std::string TextOf(const std::optional<double>& figure) {
  return figure ? fmt::format("{:.0f}", *figure) : "-";
}

const char* OutlierOf(const DeviceVariability& device) {
  return device.outlier > 0 ? "slow" : device.outlier < 0 ? "fast" : "";
}

std::size_t CountOutliers(const Variability& variability, int which) {
  return static_cast<std::size_t>(
      std::ranges::count(variability.devices, which, &DeviceVariability::outlier));
}

}  // namespace

Variability AnalyzeVariability(const DeviceRuns& runs) {
  Variability result;
  std::vector<double> seconds;
  std::vector<double> spreads;
  for (const auto& [place, runs_of_device] : runs) {
    result.devices.push_back(DeviceOf(place, runs_of_device));
    seconds.push_back(result.devices.back().seconds);
    if (runs_of_device.size() > 1) spreads.push_back(result.devices.back().repeat_spread);
  }
  result.box = BoxOf(seconds);
  const auto [min, max] = std::minmax_element(seconds.begin(), seconds.end());
  result.range = (*max - *min) / result.box.median;
  for (DeviceVariability& device : result.devices) {
    device.normalized = device.seconds / result.box.median;
    device.outlier = device.seconds > result.box.upper()   ? 1
                     : device.seconds < result.box.lower() ? -1
                                                           : 0;
  }
  if (!spreads.empty()) {
    result.median_repeat_spread = MedianOf(spreads);
    result.max_repeat_spread = *std::ranges::max_element(spreads);
  }
  std::ranges::stable_sort(result.devices, std::greater(), &DeviceVariability::seconds);
  return result;
}

std::string FormatVariability(const Variability& variability) {
  std::string text =
      "| host                 | device | runs | mean ms   | normalized | min ms    | max ms    | "
      "repeats % | MHz   | C   | W    | outlier |\n"
      "| -------------------- | ------ | ---- | --------- | ---------- | --------- | --------- | "
      "--------- | ----- | --- | ---- | ------- |\n";
  std::set<std::string> hosts;
  for (const DeviceVariability& device : variability.devices) {
    hosts.insert(device.place.host);
    text += fmt::format(
        "| {:<20} | {:<6} | {:<4} | {:<9.3f} | {:<10.4f} | {:<9.3f} | {:<9.3f} | {:<9} | {:<5} | "
        "{:<3} | {:<4} | {:<7} |\n",
        device.place.host, device.place.device, device.runs, device.seconds * 1e3,
        device.normalized, device.min_seconds * 1e3, device.max_seconds * 1e3,
        device.runs > 1 ? fmt::format("{:.2f}", 100 * device.repeat_spread) : "-",
        TextOf(device.mhz), TextOf(device.celsius), TextOf(device.watts), OutlierOf(device));
  }
  const AsciiTable& box = variability.box;
  text += fmt::format("\n{} of {}: median {:.3f} ms, quartiles {:.3f} and {:.3f} ms\n",
                      support::Counted(static_cast<long long>(variability.devices.size()), "GPU"),
                      support::Counted(static_cast<long long>(hosts.size()), "node"),
                      box.median * 1e3, box.q1 * 1e3, box.q3 * 1e3);
  text += fmt::format(
      "variation {:.2f} % of the median from whisker to whisker, {:.2f} % from the fastest to the "
      "slowest\n",
      100 * box.variation(), 100 * variability.range);
  text += fmt::format("outliers: {} slow, {} fast\n", CountOutliers(variability, 1),
                      CountOutliers(variability, -1));
  if (std::ranges::any_of(variability.devices, [](const auto& d) { return d.runs > 1; })) {
    text +=
        fmt::format("repeats on one GPU: {:.2f} % apart in the median, {:.2f} % at most\n",
                    100 * variability.median_repeat_spread, 100 * variability.max_repeat_spread);
  }
  return text;
}

std::string VariabilityJson(const Variability& variability) {
  const AsciiTable& box = variability.box;
  std::string text = PythonJson(
      LogFields{{"median_seconds", box.median},
                {"q1_seconds", box.q1},
                {"q3_seconds", box.q3},
                {"lower_whisker_seconds", box.lower()},
                {"upper_whisker_seconds", box.upper()},
                {"variation", box.variation()},
                {"range", variability.range},
                {"slow_outliers", static_cast<std::int64_t>(CountOutliers(variability, 1))},
                {"fast_outliers", static_cast<std::int64_t>(CountOutliers(variability, -1))},
                {"median_repeat_spread", variability.median_repeat_spread},
                {"max_repeat_spread", variability.max_repeat_spread}});
  text.pop_back();  // its brace
  text += ",\n \"devices\": [";
  const char* separator = "\n  ";
  for (const DeviceVariability& device : variability.devices) {
    LogFields fields = {{"host", device.place.host},
                        {"device", std::int64_t{device.place.device}},
                        {"runs", static_cast<std::int64_t>(device.runs)},
                        {"seconds", device.seconds},
                        {"normalized", device.normalized},
                        {"min_seconds", device.min_seconds},
                        {"max_seconds", device.max_seconds},
                        {"repeat_spread", device.repeat_spread},
                        {"outlier", std::string(OutlierOf(device))}};
    const auto add = [&](const char* name, const std::optional<double>& figure) {
      if (figure) fields.emplace_back(name, *figure);
    };
    add("mhz", device.mhz);
    add("celsius", device.celsius);
    add("watts", device.watts);
    text += separator + PythonJson(fields);
    separator = ",\n  ";
  }
  return text + "]}\n";
}

std::string RunVariability(const VariabilityOptions& options, Diagnostics& diagnostics) {
  const DeviceRuns runs = ReadDurationLogs(options.logs, diagnostics);
  if (runs.empty()) {
    const int code = diagnostics.exit_code() == EX_OK ? EX_DATAERR : diagnostics.exit_code();
    throw trainer::Error(code,
                         "there are no durations to compare: give the directory of ddltraind "
                         "--variability_dir, with files such as resnet_iterdur_1649888832_c1.txt");
  }
  const Variability variability = AnalyzeVariability(runs);
  if (!options.json.empty()) {
    try {
      WriteFile(options.json, VariabilityJson(variability));
    } catch (const trainer::Error& error) {
      diagnostics.Problem(error.what(), error.exit_code());
    }
  }
  return FormatVariability(variability);
}

}  // namespace bench
