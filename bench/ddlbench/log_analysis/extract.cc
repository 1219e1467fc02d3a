// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/extract.h"

#include <sysexits.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "bench/ddlbench/log_analysis/files.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using trainer::Error;

constexpr char kNoLog[] = ": there is no log that can be used, such as 1n1g/r50_b128_fp32_1.log";

// The entries of a directory, by name.
std::vector<fs::path> EntriesOf(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) {
    throw Error(EX_NOINPUT, directory.string() + ": cannot be read: " + error.message() +
                                "; give a directory of logs, as ddlbench sweep makes it");
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool IsDirectory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool HasCases(const fs::path& directory) {
  const std::vector<fs::path> entries = EntriesOf(directory);
  return std::any_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    return ParseCase(entry.filename().string()) && IsDirectory(entry);
  });
}

// What a log says of the shape of its run; nothing of what it does not say.
struct Expected {
  std::string_view key;
  std::int64_t value;
  std::string_view of;  // which name says so
};

std::string Place(const fs::path& path, const LogLine& line) {
  return path.string() + (line.number == 0 ? "" : ":" + std::to_string(line.number)) + ": ";
}

// Throws Error(EX_DATAERR) where the log is one of another shape.
void CheckShape(std::string_view text, const std::vector<Expected>& shape) {
  const LogEntry entry = ParseLogEntry(text);
  if (entry.kind != EntryKind::kNvlog) return;
  for (const Expected& expected : shape) {
    const auto value = ValueOf(entry, expected.key);
    const auto number = value ? NumberOf(*value) : std::nullopt;
    if (number && *number != static_cast<double>(expected.value)) {
      throw Error(EX_DATAERR, std::string(expected.key) + " is " + std::string(*value) + ", but " +
                                  std::string(expected.of) + " says " +
                                  std::to_string(expected.value));
    }
  }
}

// "logs/" has an empty last part; DLPerf wants the one before it.
std::string LastPart(const fs::path& directory) {
  std::error_code error;
  const fs::path absolute = fs::absolute(directory, error);
  if (error) throw Error(EX_OSERR, directory.string() + ": " + error.message());
  const fs::path whole = absolute.lexically_normal();
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

void ReadCase(const fs::path& directory, const Case& at, const SpeedWindow& window,
              std::map<std::string, ModelRuns>& models, Diagnostics& diagnostics) {
  for (const fs::path& path : EntriesOf(directory)) {
    if (path.extension() != ".log") continue;
    const auto name = ParseRunName(path.filename().string());
    if (!name) {
      diagnostics.Problem(path.string() +
                          ": its name is none such as r50_b128_fp32_1.log; it is left out");
      continue;
    }
    const auto speed = ReadSpeed(path, at, *name, window, diagnostics);
    if (!speed) continue;
    CaseRuns& runs = models[name->model][at];
    if (runs.batch == 0) runs.batch = name->batch;
    if (runs.batch != name->batch) {
      diagnostics.Problem(path.string() + ": its batch is " + std::to_string(name->batch) +
                          ", that of the logs before it " + std::to_string(runs.batch) +
                          "; it is left out: give each batch a directory of its own");
    } else if (!runs.speeds.emplace(name->repeat, *speed).second) {
      diagnostics.Problem(path.string() + ": there is another log of " + name->model + ", repeat " +
                          std::to_string(name->repeat) +
                          "; it is left out: give each precision a directory of its own");
    }
  }
}

}  // namespace

SpeedWindow WindowOf(const ExtractOptions& options) {
  SpeedWindow window;
  window.rule = options.rule == "time" ? SpeedRule::kTime : SpeedRule::kRate;
  window.warmup_steps = options.warmup_batches;
  window.steps = options.train_batches;
  const int fewest = window.rule == SpeedRule::kTime ? 2 : 1;
  if (window.warmup_steps < kUnloggedSteps) {
    throw Error(EX_USAGE,
                "--warmup_batches must be 20 or more: logs have no line for the first 20");
  }
  if (window.steps < window.warmup_steps + fewest) {
    throw Error(EX_USAGE, "--train_batches must be " +
                              std::to_string(window.warmup_steps + fewest) +
                              " or more: so many steps are needed to measure one behind "
                              "--warmup_batches");
  }
  return window;
}

std::optional<double> ReadSpeed(const fs::path& path, const Case& at, const RunName& name,
                                const SpeedWindow& window, Diagnostics& diagnostics) {
  const std::vector<Expected> shape = {{"Num GPUs", at.ranks(), "the directory's name"},
                                       {"Per-GPU Batch Size", name.batch, "the file's name"}};
  SpeedMeter meter(window, at.ranks() * name.batch);
  LogLine line;
  try {
    LogLines lines(path);
    bool is_utf8 = true;
    while (!meter.is_full() && lines.Next(line)) {
      // The line that a run was killed in says nothing.
      if (!line.is_whole) break;
      if (is_utf8 && !line.is_cut && !IsUtf8(line.text)) {
        is_utf8 = false;
        diagnostics.Note(Place(path, line) +
                         "bytes that are no UTF-8; DLPerf's own scripts stop at them");
      }
      try {
        CheckShape(line.text, shape);
        meter.Add(line.text);
      } catch (const Error& error) {
        diagnostics.Problem(Place(path, line) + error.what() + "; the log is left out");
        return std::nullopt;
      }
    }
  } catch (const Error& error) {
    diagnostics.Problem(error.what(), error.exit_code());
    return std::nullopt;
  }
  if (!meter.is_full()) {
    diagnostics.Problem(Place(path, line) + "the log ends after " +
                        support::Counted(meter.lines(), "line") + " with imgs_per_sec of " +
                        std::to_string(meter.needed()) + "; it is left out");
    return std::nullopt;
  }
  const auto speed = meter.Speed();
  if (!speed) {
    diagnostics.Problem(Place(path, line) +
                        "no time has passed since the first step that counts; the log is left out");
  }
  return speed;
}

ModelSpeeds ReadLogDirectory(const fs::path& directory, const SpeedWindow& window,
                             Diagnostics& diagnostics) {
  std::map<std::string, ModelRuns> models;
  for (const fs::path& entry : EntriesOf(directory)) {
    const auto at = ParseCase(entry.filename().string());
    if (!at || !IsDirectory(entry)) continue;
    try {
      ReadCase(entry, *at, window, models, diagnostics);
    } catch (const Error& error) {
      diagnostics.Problem(error.what(), error.exit_code());
    }
  }
  ModelSpeeds speeds;
  for (auto& [model, runs] : models) {
    speeds[model] = SpeedsOf(runs);
    if (!runs.contains(Case{1, 1})) {
      diagnostics.Note(directory.string() + ": " + model +
                       " has no log of 1n1g that can be used, so there are no speed-ups");
    }
  }
  if (speeds.empty()) diagnostics.Problem(directory.string() + kNoLog);
  return speeds;
}

std::vector<fs::path> FindLogDirectories(const fs::path& directory, Diagnostics& diagnostics) {
  if (HasCases(directory)) return {directory};
  std::vector<fs::path> found;
  for (const fs::path& entry : EntriesOf(directory)) {
    if (!IsDirectory(entry)) continue;
    try {
      if (HasCases(entry)) found.push_back(entry);
    } catch (const Error& error) {
      diagnostics.Problem(error.what(), error.exit_code());
    }
  }
  return found;
}

std::string Extract(const ExtractOptions& options, Diagnostics& diagnostics) {
  const SpeedWindow window = WindowOf(options);
  std::string text;
  std::set<fs::path> written;
  for (const std::string& directory : options.directories) {
    const std::size_t logged = diagnostics.messages().size();
    std::vector<fs::path> log_directories;
    try {
      log_directories = FindLogDirectories(directory, diagnostics);
    } catch (const Error& error) {
      diagnostics.Problem(error.what(), error.exit_code());
      continue;
    }
    if (log_directories.empty() && diagnostics.messages().size() == logged) {
      diagnostics.Problem(directory + kNoLog);
    }
    for (const fs::path& log_directory : log_directories) {
      const ModelSpeeds models = ReadLogDirectory(log_directory, window, diagnostics);
      if (models.empty()) continue;
      const std::string name = LastPart(log_directory);
      for (const auto& [model, rows] : models) {
        text.append("## ").append(name).append(": ").append(model).append("\n\n");
        text.append(FormatTable(rows)).append("\n");
      }
      const fs::path output = options.output_dir.empty() ? fs::path(directory) / "result"
                                                         : fs::path(options.output_dir);
      const fs::path file = output / (name + "_result.json");
      if (!written.insert(file).second) {
        diagnostics.Problem(log_directory.string() + ": " + file.string() +
                            " is that of another directory of this name already; give each its own "
                            "--output_dir");
        continue;
      }
      try {
        WriteFile(file, FormatJson(models));
      } catch (const Error& error) {
        diagnostics.Problem(std::string(error.what()) + "; give ddlbench extract --output_dir DIR",
                            error.exit_code());
        continue;
      }
      text.append("Saving result to ").append(file.string()).append("\n\n");
    }
  }
  return text;
}

}  // namespace bench
