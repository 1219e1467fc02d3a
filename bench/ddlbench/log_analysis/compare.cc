// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "bench/ddlbench/log_analysis/files.h"
#include "bench/ddlbench/log_analysis/mila_report.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using trainer::Error;

// A report has kilobytes.
constexpr std::uintmax_t kMaxReportBytes = std::uintmax_t{16} * 1024 * 1024;

// Tables of spreadsheets: lines end in CR LF, and the first one begins with a mark of UTF-8.
std::string_view WithoutMarks(const LogLine& line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view text = line.text;
  if (line.number == 1 && text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::vector<std::string> CellsOf(std::string_view line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// The column of each name; cells.size() for one that there is not.
struct Columns {
  explicit Columns(const std::vector<std::string>& header)
      : bench(Find(header, "bench")),
        target(Find(header, "target")),
        min_share(Find(header, "perf_target")),
        largest_sd(Find(header, "sd_target")),
        count(header.size()) {}

  static std::size_t Find(const std::vector<std::string>& header, const std::string& name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  }

  std::size_t bench;
  std::size_t target;
  std::size_t min_share;
  std::size_t largest_sd;
  std::size_t count;
};

// Throws Error(EX_DATAERR) for a cell that is not a number of 0 or more.
double NumberIn(const std::string& cell, const std::string& name) {
  const auto number = NumberOf(cell);
  if (!number || *number < 0) {
    throw Error(EX_DATAERR, name + " is '" + cell + "', which is not a number of 0 or more");
  }
  return *number;
}

void AddRow(const std::vector<std::string>& cells, const Columns& columns, Targets& targets) {
  if (cells.size() != columns.count) {
    throw Error(EX_DATAERR,
                fmt::format("{} cells, but the header has {}", cells.size(), columns.count));
  }
  Target target;
  target.items_per_second = NumberIn(cells[columns.target], "target");
  if (target.items_per_second == 0) throw Error(EX_DATAERR, "target is 0");
  if (columns.min_share < columns.count) {
    target.min_share = NumberIn(cells[columns.min_share], "perf_target");
  }
  if (columns.largest_sd < columns.count) {
    target.largest_sd = NumberIn(cells[columns.largest_sd], "sd_target");
  }
  if (!targets.emplace(cells[columns.bench], target).second) {
    throw Error(EX_DATAERR, cells[columns.bench] + " has a row already");
  }
}

// A JSON file whose name is one of Mila's: <suite>.<bench>.R<run>.D<devices>...
bool LooksLikeReport(const fs::path& path) {
  return path.extension() == ".json" && path.filename().string().find(".R") != std::string::npos;
}

// The files that `path` stands for.
std::vector<fs::path> ReportFiles(const fs::path& path, Diagnostics& diagnostics) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  const std::size_t logged = diagnostics.messages().size();
  std::vector<fs::path> files = FilesBelow(path, LooksLikeReport, diagnostics);
  if (files.empty() && diagnostics.messages().size() == logged) {
    diagnostics.Problem(path.string() + ": there is no report such as fast.convnet.R0.D0.*.json");
  }
  return files;
}

std::string ReadText(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error) && fs::file_size(path, error) > kMaxReportBytes) {
    throw Error(EX_DATAERR, path.string() + ": more than 16 MiB are no report");
  }
  std::string text;
  LogLines lines(path);
  for (LogLine line; lines.Next(line);) {
    if (line.is_cut) throw Error(EX_DATAERR, path.string() + ": so long a line is no report's");
    text.append(line.text).append("\n");
  }
  return text;
}

}  // namespace

Targets ReadTargets(const fs::path& path, Diagnostics& diagnostics) {
  LogLines lines(path);
  LogLine line;
  const auto place = [&] { return fmt::format("{}:{}: ", path.string(), line.number); };
  if (!lines.Next(line)) throw Error(EX_DATAERR, path.string() + ": it is empty");
  const Columns columns(CellsOf(WithoutMarks(line)));
  if (columns.bench == columns.count || columns.target == columns.count) {
    throw Error(EX_DATAERR, place() +
                                "the first line must have columns bench and target, as in "
                                "bench,target,perf_target,sd_target");
  }
  Targets targets;
  while (lines.Next(line)) {
    const std::string_view row = WithoutMarks(line);
    if (row.empty()) continue;
    try {
      AddRow(CellsOf(row), columns, targets);
    } catch (const Error& error) {
      diagnostics.Problem(place() + error.what() + "; the row is left out");
    }
  }
  return targets;
}

std::map<std::string, std::vector<double>> ReadReports(const std::vector<std::string>& paths,
                                                       Diagnostics& diagnostics) {
  std::map<std::string, std::vector<double>> results;
  for (const std::string& path : paths) {
    for (const fs::path& file : ReportFiles(path, diagnostics)) {
      std::string text;
      try {
        text = ReadText(file);
      } catch (const Error& error) {
        diagnostics.Problem(error.what(), error.exit_code());
        continue;
      }
      try {
        const MilaResult result = ParseMilaReport(text);
        results[result.name].push_back(result.items_per_second);
      } catch (const Error& error) {
        diagnostics.Problem(file.string() + ": " + error.what() + "; it is left out");
      }
    }
  }
  return results;
}

std::string FormatComparison(const std::map<std::string, std::vector<double>>& results,
                             const Targets& targets) {
  std::string text =
      "| bench                | target    | result    | sd       | sd%    | diff     | runs | pass "
      "|\n"
      "| -------------------- | --------- | --------- | -------- | ------ | -------- | ---- | ---- "
      "|\n";
  for (const auto& [name, values] : results) {
    const Statistics all = SampleStatisticsOf(values);
    const bool has_sd = values.size() > 1;
    std::string target = "-";
    std::string difference = "-";
    std::string pass = "-";
    if (const auto found = targets.find(name); found != targets.end()) {
      const Target& wanted = found->second;
      target = fmt::format("{:.2f}", wanted.items_per_second);
      difference = fmt::format("{:+.2f} %", 100 * (all.mean / wanted.items_per_second - 1));
      if (wanted.min_share) {
        const bool is_fast = all.mean >= *wanted.min_share * wanted.items_per_second;
        const bool is_steady = !wanted.largest_sd || all.sd <= *wanted.largest_sd * all.mean;
        pass = is_fast && is_steady ? "yes" : "no";
      }
    }
    text += fmt::format("| {:<20} | {:<9} | {:<9.2f} | {:<8} | {:<6} | {:<8} | {:<4} | {:<4} |\n",
                        name, target, all.mean, has_sd ? fmt::format("{:.2f}", all.sd) : "-",
                        has_sd ? fmt::format("{:.2f}", 100 * all.sd / all.mean) : "-", difference,
                        all.count, pass);
  }
  return text;
}

std::string Compare(const CompareOptions& options, Diagnostics& diagnostics) {
  const Targets targets = ReadTargets(options.targets, diagnostics);
  const auto results = ReadReports(options.reports, diagnostics);
  for (const auto& [name, values] : results) {
    if (!targets.contains(name)) diagnostics.Note(options.targets + " has no target of " + name);
  }
  return results.empty() ? "" : FormatComparison(results, targets);
}

}  // namespace bench
