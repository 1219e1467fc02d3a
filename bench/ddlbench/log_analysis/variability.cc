// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/variability.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

#include "bench/base/statistics.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
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
  const BoxPlot& box = variability.box;
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
  const BoxPlot& box = variability.box;
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

namespace {

namespace fs = std::filesystem;
using trainer::Error;

std::vector<std::string> SplitAt(char separator, std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The next word of `text`, which loses it.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::optional<int> DeviceNumber(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  const bool fits = result.ec == std::errc() && result.ptr == end && number >= 0;
  return fits ? std::optional(number) : std::nullopt;
}

using DurationsByDevice = std::map<int, std::vector<double>>;

constexpr std::string_view kDurationStart = "Iteration Duration ";

// Adds what stands behind each "Iteration Duration " of a line: the processes of a node print at
// once, so that there may be two.  False if some of it is no duration.
bool AddDurations(std::string_view line, DurationsByDevice& durations) {
  bool is_all_good = true;
  for (std::size_t at = line.find(kDurationStart); at != std::string_view::npos;
       at = line.find(kDurationStart)) {
    line.remove_prefix(at + kDurationStart.size());
    std::string_view entry = line.substr(0, line.find('I'));
    const std::string_view iteration = TakeWord(entry);
    const auto device = DeviceNumber(TakeWord(entry));
    const std::string_view colon = TakeWord(entry);
    const auto seconds = NumberOf(TakeWord(entry));
    if (IsDigits(iteration) && device && colon == ":" && seconds && *seconds > 0) {
      durations[*device].push_back(*seconds);
    } else {
      is_all_good = false;
    }
  }
  return is_all_good;
}

DurationsByDevice ReadDurations(const fs::path& path, Diagnostics& diagnostics) {
  DurationsByDevice durations;
  LogLines lines(path);
  for (LogLine line; lines.Next(line);) {
    if (line.text.starts_with("Training time")) break;
    const std::string place = fmt::format("{}:{}: ", path.string(), line.number);
    // The number that a run was killed in may look like another one: 0.2 of 0.25.
    if (!line.is_whole) {
      if (line.text.find(kDurationStart) != std::string_view::npos) {
        diagnostics.Note(place + "the last line is not whole; it is left out");
      }
      break;
    }
    if (!AddDurations(line.text, durations)) {
      diagnostics.Problem(place + "no duration of an iteration; it is left out");
    }
  }
  // The first iteration of each is no measure: memory and kernels are new.
  for (auto& [device, values] : durations) values.erase(values.begin());
  std::erase_if(durations, [](const auto& entry) { return entry.second.empty(); });
  if (durations.empty()) {
    diagnostics.Problem(path.string() + ": no two iterations on one device; it is left out");
  }
  return durations;
}

// Readings of one thing, with their times.
using Readings = std::vector<std::pair<double, double>>;

std::optional<double> MedianBetween(const Readings& readings, double first, double last) {
  std::vector<double> values;
  for (const auto& [time, value] : readings) {
    if (time >= first && time <= last) values.push_back(value);
  }
  return values.empty() ? std::nullopt : std::optional(BoxOf(values).median);
}

// What a table says of one device.
struct DeviceTable {
  double first = 0;  // kernel's start
  double last = 0;
  bool has_kernel = false;
  Readings mhz;
  Readings celsius;
  Readings milliwatts;
};

// Columns by name; titles.size() for one that there is not.
struct TableColumns {
  explicit TableColumns(const std::vector<std::string>& titles)
      : start(Find(titles, "Start")),
        device(Find(titles, "Device")),
        system(Find(titles, "System")),
        name(Find(titles, "Name")),
        count(titles.size()) {}

  static std::size_t Find(const std::vector<std::string>& titles, const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(titles, name) - titles.begin());
  }
  bool is_complete() const { return std::max({start, device, system, name}) < count; }

  std::size_t start, device, system, name, count;
};

std::vector<std::string> CellsOfTable(std::string_view line) {
  std::vector<std::string> cells = SplitAt(',', line);
  for (std::string& cell : cells) std::erase(cell, '"');
  return cells;
}

// "Tesla V100-SXM2-16GB (1)".
std::optional<int> DeviceInName(const std::string& name) {
  const std::size_t open = name.rfind('(');
  if (open == std::string::npos || !name.ends_with(')')) return std::nullopt;
  return DeviceNumber(std::string_view(name).substr(open + 1, name.size() - open - 2));
}

void AddTableRow(const std::vector<std::string>& cells, const TableColumns& columns,
                 std::map<int, DeviceTable>& tables) {
  // Readers of the study leave out rows with other numbers of cells, such as names with commas.
  if (cells.size() != columns.count) return;
  const auto start = NumberOf(cells[columns.start]);
  const auto device = DeviceInName(cells[columns.device]);
  if (!start || !device) return;
  DeviceTable& table = tables[*device];
  const std::string& name = cells[columns.name];
  const std::string& system = cells[columns.system];
  const auto value = NumberOf(system.substr(0, system.find('/')));
  if (!system.empty()) {
    if (!value) return;
    if (name == "[SM/Memory Clock (MHz)]") table.mhz.emplace_back(*start, *value);
    if (name == "[Temperature (C)]") table.celsius.emplace_back(*start, *value);
    if (name == "[Power/Limit (mW)]") table.milliwatts.emplace_back(*start, *value);
    return;
  }
  table.first = table.has_kernel ? std::min(table.first, *start) : *start;
  table.last = table.has_kernel ? std::max(table.last, *start) : *start;
  table.has_kernel = true;
}

std::map<int, DeviceTable> ReadTable(const fs::path& path, Diagnostics& diagnostics) {
  std::map<int, DeviceTable> tables;
  std::optional<TableColumns> columns;
  LogLines lines(path);
  for (LogLine line; lines.Next(line);) {
    if (line.text.find("==") != std::string_view::npos || line.is_cut || !line.is_whole) continue;
    if (columns) {
      AddTableRow(CellsOfTable(line.text), *columns, tables);
      continue;
    }
    columns.emplace(CellsOfTable(line.text));
    if (columns->is_complete()) continue;
    diagnostics.Problem(
        fmt::format("{}:{}: no titles with Start, Device, System and Name; the "
                    "table is left out",
                    path.string(), line.number));
    return {};
  }
  return tables;
}

void AddTable(const std::map<int, DeviceTable>& tables, const LogName& name, DeviceRuns& runs) {
  for (const auto& [device, table] : tables) {
    const auto place = runs.find({name.host, device});
    if (place == runs.end() || !table.has_kernel) continue;
    const auto run = place->second.find(name.run);
    if (run == place->second.end()) continue;
    run->second.mhz = MedianBetween(table.mhz, table.first, table.last);
    run->second.celsius = MedianBetween(table.celsius, table.first, table.last);
    run->second.watts = MedianBetween(table.milliwatts, table.first, table.last);
    if (run->second.watts) *run->second.watts /= 1e3;
  }
}

// The last parts of a file's name are a host, which may have '_' in its name, and in names of the
// study's scripts then nnodes1, bsz64 and so on, which say how it ran.
std::string HostOf(const std::vector<std::string>& parts) {
  constexpr std::string_view kNodes = "nnodes";
  std::string host = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.starts_with(kNodes) && IsDigits(part.substr(kNodes.size()))) break;
    host += "_" + parts[i];
  }
  return host;
}

// Adds the durations of a file; a run on a device that has some already keeps them.
void AddRun(const DurationsByDevice& durations, const LogName& name, const fs::path& file,
            DeviceRuns& runs, Diagnostics& diagnostics) {
  for (const auto& [device, values] : durations) {
    DeviceRun run;
    run.durations = values;
    if (runs[{name.host, device}].emplace(name.run, std::move(run)).second) continue;
    diagnostics.Problem(fmt::format(
        "{}: another file has durations of the run {} on device {} of {}; these are left out",
        file.string(), name.run, device, name.host));
  }
}

bool IsStudyLog(const fs::path& path) {
  const std::string name = path.filename().string();
  return ParseDurationsName(name) || ParseTableName(name);
}

// The files that `paths` stand for, each once.
std::set<fs::path> FilesOf(const std::vector<std::string>& paths, Diagnostics& diagnostics) {
  std::set<fs::path> files;
  for (const fs::path path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      diagnostics.Problem(path.string() + ": cannot be read: " + error.message(), EX_NOINPUT);
      continue;
    }
    if (!fs::is_directory(status)) {
      files.insert(path);
      continue;
    }
    const std::size_t logged = diagnostics.messages().size();
    const auto found = FilesBelow(path, IsStudyLog, diagnostics);
    files.insert(found.begin(), found.end());
    if (found.empty() && diagnostics.messages().size() == logged) {
      diagnostics.Problem(path.string() +
                          ": there is no log such as resnet_iterdur_1649888832_c1.txt");
    }
  }
  return files;
}

}  // namespace

std::optional<LogName> ParseDurationsName(const std::string& name) {
  if (!name.ends_with(".txt")) return std::nullopt;
  const std::vector<std::string> parts = SplitAt('_', name.substr(0, name.size() - 4));
  const auto mark = std::ranges::find(parts, "iterdur");
  if (parts.end() - mark < 3 || mark == parts.begin() || !IsDigits(mark[1])) return std::nullopt;
  const std::string host = HostOf({mark + 2, parts.end()});
  return host.empty() ? std::nullopt : std::optional(LogName{mark[1], host});
}

std::optional<LogName> ParseTableName(const std::string& name) {
  if (!name.ends_with(".csv")) return std::nullopt;
  const std::vector<std::string> parts = SplitAt('_', name.substr(0, name.size() - 4));
  if (parts.size() < 4 || !IsDigits(parts[1]) || !IsDigits(parts[2])) return std::nullopt;
  const std::string host = HostOf({parts.begin() + 3, parts.end()});
  return host.empty() ? std::nullopt : std::optional(LogName{parts[2], host});
}

DeviceRuns ReadDurationLogs(const std::vector<std::string>& paths, Diagnostics& diagnostics) {
  DeviceRuns runs;
  std::vector<fs::path> tables;
  for (const fs::path& file : FilesOf(paths, diagnostics)) {
    try {
      const std::string name = file.filename().string();
      if (ParseTableName(name)) {
        tables.push_back(file);
        continue;
      }
      const auto parsed = ParseDurationsName(name);
      if (!parsed) {
        diagnostics.Problem(file.string() +
                            ": its name is not of the form resnet_iterdur_1649888832_c1.txt, "
                            "which tells run and host; it is left out");
        continue;
      }
      AddRun(ReadDurations(file, diagnostics), *parsed, file, runs, diagnostics);
    } catch (const Error& error) {
      diagnostics.Problem(error.what(), error.exit_code());
    }
  }
  for (const fs::path& file : tables) {
    try {
      AddTable(ReadTable(file, diagnostics), *ParseTableName(file.filename().string()), runs);
    } catch (const Error& error) {
      diagnostics.Problem(error.what(), error.exit_code());
    }
  }
  return runs;
}

}  // namespace bench
