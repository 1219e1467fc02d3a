// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/mila_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/ddlbench/log_analysis/files.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "support/json.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/python_format.h"

namespace bench {
namespace {

constexpr std::array kBenchmarks = {
    MilaBenchmark{"convnet", MilaKind::kOne, 64, false},
    MilaBenchmark{"convnet_fp16", MilaKind::kOne, 128, true},
    MilaBenchmark{"convnet_distributed", MilaKind::kDistributed, 64, false},
    MilaBenchmark{"convnet_distributed_fp16", MilaKind::kDistributed, 128, true},
    MilaBenchmark{"loader", MilaKind::kLoader, 256, false},
};

}  // namespace

MilaBenchmark MilaBenchmarkOf(std::string_view name) {
  const auto* const found =
      std::find_if(kBenchmarks.begin(), kBenchmarks.end(),
                   [&](const MilaBenchmark& benchmark) { return benchmark.name == name; });
  return found != kBenchmarks.end() ? *found : kBenchmarks.front();
}

namespace {

constexpr std::size_t kBlockBytes = 64;

// The first 32 bits behind the point of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

void AddBlock(State& state, std::string_view block) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t k = 0; k < 4; ++k) {
      words[i] = words[i] << 8 | static_cast<unsigned char>(block[4 * i + k]);
    }
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = words[i - 15];
    const std::uint32_t b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & f) ^ (~e & g)) + kRound[i] + words[i];
    const std::uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const State sum = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += sum[i];
}

}  // namespace

std::string Sha256(std::string_view text) {
  // The first 32 bits behind the point of the square roots of the first 8 primes.
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  // A bit 1, zeros, and the length in bits in the last 8 bytes of a block.
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % kBlockBytes != kBlockBytes - 8) padded += '\0';
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(text.size());
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift & 0xff);
  for (std::size_t at = 0; at < padded.size(); at += kBlockBytes) {
    AddBlock(state, std::string_view(padded).substr(at, kBlockBytes));
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) digits += kDigits[word >> shift & 0xf];
  }
  return digits;
}

namespace {

using nlohmann::json;

constexpr std::size_t kLosses = 100;

// "Mon Nov 23 02:57:23 2026", as Python's time.ctime.
std::string FormatUtc(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S %Y", &parts);
  return {text.data(), size};
}

json TimerOf(const Statistics& timer) {
  return {{"avg", timer.mean}, {"min", timer.min},     {"max", timer.max},
          {"sd", timer.sd},    {"count", timer.count}, {"unit", "s"}};
}

trainer::Error NoReport(const std::string& why) {
  return {EX_DATAERR, "it is no report of a benchmark of Mila's: " + why};
}

}  // namespace

std::vector<double> ObservationsOf(std::span<const RunStep> steps, std::int64_t global_batch,
                                   int repeat, int number) {
  std::vector<double> observations;
  std::size_t at = 0;
  for (int i = 0; i < repeat; ++i) {
    double seconds = 0;
    for (int k = 0; k < number; ++k) {
      DDL_CHECK(at < steps.size());
      seconds += static_cast<double>(global_batch) / steps[at++].images_per_second;
    }
    observations.push_back(seconds);
  }
  return observations;
}

MilaTimes TimesOf(std::span<const double> observations, std::int64_t batch_size, int number) {
  DDL_CHECK(observations.size() > kSkippedObservations);
  MilaTimes times;
  times.train = StatisticsOf(observations.subspan(kSkippedObservations));
  const double items = static_cast<double>(batch_size) * number;
  times.items_avg = items / times.train.mean;
  times.items_min = items / times.train.max;
  times.items_max = items / times.train.min;
  return times;
}

std::string FormatEta(int observation, int repeat, double seconds, std::optional<double> loss) {
  const int left = repeat - (observation + 1);
  const std::string text =
      fmt::format("[{:3}/{:3}] | ETA: {:6.2f} min ", observation, repeat, seconds * left / 60);
  return loss ? text + fmt::format("| Batch Loss {:8.4f}", *loss) : text;
}

std::string UniqueIdOf(const MilaRun& run) {
  std::map<std::string, trainer::LogValue> arguments = {{"cpu_cores", std::int64_t{run.cpu_cores}},
                                                        {"devices", std::int64_t{run.devices}},
                                                        {"number", std::int64_t{run.number}},
                                                        {"repeat", std::int64_t{run.repeat}},
                                                        {"version", run.version}};
  if (!run.is_loader) {
    arguments["arch"] = run.arch;
    arguments["half"] = run.half;
    arguments["lr"] = run.learning_rate;
  }
  std::string text;
  for (const auto& [key, value] : arguments) text += key + trainer::PythonString(value);
  return Sha256(text);
}

std::string FormatMilaReport(const MilaRun& run, const std::optional<MilaTimes>& times,
                             std::span<const RunStep> steps) {
  json losses = json::array();
  for (const RunStep& step : steps.last(std::min(steps.size(), kLosses))) {
    losses.push_back(step.cross_entropy);
  }
  json report = {{"batch_loss", losses},
                 {"batch_size", run.batch_size},
                 {"completed", run.completed},
                 {"cpu_cores", run.cpu_cores},
                 {"cuda", !run.gpu.empty()},
                 {"data", run.data},
                 {"devices", run.devices},
                 {"end_time", FormatUtc(run.end_time)},
                 {"epoch_loss", json::array()},
                 {"hostname", run.hostname},
                 {"jr_id", run.jr_id},
                 {"metrics", json::object()},
                 {"name", run.name},
                 {"number", run.number},
                 {"repeat", run.repeat},
                 {"run_id", run.run_id},
                 {"start_time", FormatUtc(run.start_time)},
                 {"suite", run.suite},
                 {"unique_id", UniqueIdOf(run)},
                 {"vcd", run.vcd},
                 {"version", run.version}};
  if (!run.is_loader) {
    report["arch"] = run.arch;
    report["half"] = run.half;
    report["lr"] = run.learning_rate;
  }
  if (times) {
    report["train"] = TimerOf(times->train);
    report["train_item"] = {{"avg", times->items_avg},
                            {"max", times->items_max},
                            {"min", times->items_min},
                            {"range", times->items_max - times->items_min},
                            {"unit", "items/sec"}};
  }
  if (!run.gpu.empty()) report["gpu"] = run.gpu;
  return report.dump(4, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

std::string MilaFileStem(const MilaRun& run, std::int64_t microseconds) {
  constexpr std::int64_t kMillion = 1'000'000;
  const std::time_t seconds = microseconds / kMillion;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> time{};
  const std::size_t size = std::strftime(time.data(), time.size(), "%Y%m%d-%H%M%S", &parts);
  return fmt::format("{}.{}.R{}.D{}{}.{}-{:06}", run.suite, run.name, run.run_id, run.vcd,
                     run.completed ? "" : ".FAIL", std::string_view(time.data(), size),
                     microseconds % kMillion);
}

MilaResult ParseMilaReport(const std::string& text) {
  const json report = support::ParseJson<json>(
      text, {.bytes = std::size_t{1} << 28, .depth = 64, .values = 10'000'000});
  if (report.is_discarded()) throw NoReport("it is no JSON");
  if (!report.is_object()) throw NoReport("it is no object");
  const auto name = report.find("name");
  if (name == report.end() || !name->is_string()) throw NoReport("it has no name");
  if (const auto completed = report.find("completed");
      completed != report.end() && *completed == false) {
    throw trainer::Error(EX_DATAERR, "it is of a run that has failed");
  }
  const auto item = report.find("train_item");
  if (item == report.end() || !item->is_object() || !item->contains("avg") ||
      !item->at("avg").is_number()) {
    throw NoReport("it has no number train_item.avg");
  }
  MilaResult result;
  result.name = name->get<std::string>();
  result.items_per_second = item->at("avg").get<double>();
  if (!std::isfinite(result.items_per_second) || result.items_per_second <= 0) {
    throw NoReport("train_item.avg is no speed");
  }
  return result;
}

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
