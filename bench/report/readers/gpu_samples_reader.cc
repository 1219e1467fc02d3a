// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/gpu_samples_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bench/base/diagnostics.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

// More than a machine has.
constexpr std::size_t kMaxGpus = 1024;

// Cells between commas, quoted or not; "" within quotation marks is one.
std::vector<std::string> CellsOf(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (letter == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += letter;
      ++i;
    } else if (letter == '"') {
      is_quoted = !is_quoted;
    } else if (letter == ',' && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += letter;
    }
  }
  return cells;
}

struct Columns {
  std::size_t start = 0;
  std::size_t device = 0;
  std::size_t system = 0;
  std::size_t name = 0;
  std::size_t count = 0;
};

// Nothing for the titles of another table.
std::optional<Columns> ColumnsOf(const std::vector<std::string>& titles) {
  Columns columns;
  columns.count = titles.size();
  for (const auto& [title, column] :
       {std::pair("Start", &columns.start), std::pair("Device", &columns.device),
        std::pair("System", &columns.system), std::pair("Name", &columns.name)}) {
    const auto found = std::find(titles.begin(), titles.end(), title);
    if (found == titles.end()) return std::nullopt;
    *column = static_cast<std::size_t>(found - titles.begin());
  }
  return columns;
}

// Seconds in the unit of the column Start.
double SecondsIn(const std::string& unit) {
  if (unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us") return 1e-6;
  if (unit == "ns") return 1e-9;
  throw Error(EX_DATAERR, "the unit of Start is '" + unit + "', not s, ms, us or ns");
}

double NumberIn(std::string_view text) {
  const auto number = NumberOf(text);
  if (!number || *number < 0) {
    throw Error(EX_DATAERR, "'" + std::string(text) + "' is not a number of 0 or more");
  }
  return *number;
}

// A GPU and where its energy has come to.
struct Meter {
  GpuSamples samples;
  double last_power_time = 0;
  double last_power = 0;

  void AddPower(double time, double watts) {
    if (samples.power.count() > 0 && time > last_power_time) {
      samples.energy += (time - last_power_time) * (watts + last_power) / 2;
      samples.power_seconds += time - last_power_time;
    }
    last_power_time = time;
    last_power = watts;
    samples.power.Add(time, watts);
  }
};

class SampleTable {
 public:
  // Throws Error(EX_DATAERR) for a row that cannot be used.
  void Add(std::string_view line) {
    // Most rows are of kernels.
    if (line.find("\"[") == std::string_view::npos && line.find(",[") == std::string_view::npos) {
      return;
    }
    const std::vector<std::string> cells = CellsOf(line);
    if (cells.size() != columns_.count) {
      throw Error(EX_DATAERR, std::to_string(cells.size()) + " cells, but the titles are " +
                                  std::to_string(columns_.count));
    }
    const std::string& name = cells[columns_.name];
    const std::string_view value = cells[columns_.system];
    const std::string_view first = value.substr(0, value.find('/'));
    if (name == "[SM/Memory Clock (MHz)]") {
      Meter& meter = MeterOf(cells);
      const double time = TimeOf(cells);
      const double sm_clock = NumberIn(first);
      if (first.size() < value.size()) {
        meter.samples.memory_clock.Add(time, NumberIn(value.substr(first.size() + 1)));
      }
      meter.samples.sm_clock.Add(time, sm_clock);
    } else if (name == "[Temperature (C)]") {
      const double temperature = NumberIn(value);
      MeterOf(cells).samples.temperature.Add(TimeOf(cells), temperature);
    } else if (name == "[Power/Limit (mW)]") {
      constexpr double kMilliwatt = 1e-3;
      const double watts = NumberIn(first) * kMilliwatt;
      MeterOf(cells).AddPower(TimeOf(cells), watts);
    }
  }

  void Begin(const Columns& columns) { columns_ = columns; }
  void Units(std::string_view line) {
    const std::vector<std::string> cells = CellsOf(line);
    seconds_ = SecondsIn(columns_.start < cells.size() ? cells[columns_.start] : "");
  }

  std::vector<GpuSamples> Samples() {
    std::vector<GpuSamples> samples;
    for (auto& [name, meter] : meters_) samples.push_back(std::move(meter.samples));
    return samples;
  }

 private:
  double TimeOf(const std::vector<std::string>& cells) const {
    return NumberIn(cells[columns_.start]) * seconds_;
  }
  Meter& MeterOf(const std::vector<std::string>& cells) {
    const std::string& name = cells[columns_.device];
    if (!IsUtf8(name)) throw Error(EX_DATAERR, "the device has bytes that are no UTF-8");
    if (!meters_.contains(name) && meters_.size() == kMaxGpus) {
      throw Error(EX_DATAERR, "there are more than 1024 devices");
    }
    Meter& meter = meters_[name];
    meter.samples.name = name;
    return meter;
  }

  Columns columns_;
  double seconds_ = 1;
  std::map<std::string, Meter> meters_;
};

}  // namespace

std::vector<GpuSamples> ReadGpuSamples(const std::filesystem::path& path,
                                       Diagnostics& diagnostics) {
  LogLines lines(path);
  FileDiagnostics file(path, diagnostics);
  SampleTable table;
  int rows = 0;  // 0: the titles are still to come, 1: their units
  for (LogLine line; lines.Next(line);) {
    if (line.text.find("==") != std::string_view::npos || line.text.empty()) continue;
    if (!line.is_whole) {
      diagnostics.Note(path.string() + ":" + std::to_string(line.number) +
                       ": the file ends within this line; the lines before it are used");
      break;
    }
    if (rows == 0) {
      const auto columns = ColumnsOf(CellsOf(line.text));
      if (!columns) return {};
      table.Begin(*columns);
      rows = 1;
      continue;
    }
    try {
      if (rows == 1) {
        rows = 2;
        table.Units(line.text);
      } else {
        table.Add(line.text);
      }
    } catch (const Error& error) {
      file.Problem(line.number, error.what());
    }
  }
  file.End();
  return table.Samples();
}

}  // namespace bench
