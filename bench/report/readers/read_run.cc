// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/read_run.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>

#include "bench/report/readers/gpu_samples_reader.h"
#include "bench/report/readers/log_reader.h"
#include "bench/report/readers/rank_times_reader.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

// Calls `read`; what it throws is a problem.
template <typename Read>
void Try(Diagnostics& diagnostics, const Read& read) {
  try {
    read();
  } catch (const trainer::Error& error) {
    diagnostics.Problem(error.what(), error.exit_code());
  }
}

void ReadGpus(const std::vector<std::filesystem::path>& paths, RunRecord& run,
              Diagnostics& diagnostics) {
  for (const std::filesystem::path& path : paths) {
    Try(diagnostics, [&] {
      std::vector<GpuSamples> gpus = ReadGpuSamples(path, diagnostics);
      // Two nodes have a GPU of the same name each.
      if (paths.size() > 1) {
        for (GpuSamples& gpu : gpus) gpu.name += ", " + path.filename().string();
      }
      std::move(gpus.begin(), gpus.end(), std::back_inserter(run.gpus));
    });
  }
}

bool IsEmpty(const RunRecord& run) {
  return run.launches == 0 && run.settings.empty() && run.measures.last_step < 0 &&
         !run.train_throughput && !run.evaluation.top1 && !run.evaluation.images_per_second &&
         run.times.empty() && run.gpus.empty();
}

}  // namespace

std::optional<RunRecord> ReadRun(const RunFiles& files, int skip_steps, Diagnostics& diagnostics) {
  RunRecord run;
  run.path = files.path;
  if (!files.log.empty()) {
    Try(diagnostics, [&] { ReadRunLog(files.log, skip_steps, run, diagnostics); });
  }
  if (run.measures.last_step < 0 && !files.training_json.empty()) {
    ReadTrainingJson(files.training_json, run, diagnostics);
  }
  if (!files.trace.empty()) {
    Try(diagnostics, [&] {
      run.times = ReadTrace(files.trace, diagnostics);
      run.times_from = "trace.json";
    });
  }
  if (run.times.empty()) {
    run.times_from = "files for Prometheus";
    for (const std::filesystem::path& path : files.prometheus) {
      Try(diagnostics, [&] { ReadPrometheusFile(path, run.times, diagnostics); });
    }
  }
  if (run.times.empty()) run.times_from.clear();
  ReadGpus(files.gpu_samples, run, diagnostics);
  if (run.ranks == 0) run.ranks = static_cast<std::int64_t>(run.times.size());
  if (IsEmpty(run)) return std::nullopt;
  if (run.measures.last_step < 0) {
    diagnostics.Note(
        run.path +
        ": it has no step, so there is no speed; log.json begins with the 21st step of "
        "a launch");
  }
  return run;
}

namespace {

namespace fs = std::filesystem;

constexpr char kLog[] = "log.json";
constexpr char kTrainingJson[] = "training.json";
constexpr char kTrace[] = "trace.json";
// Of a directory within a directory; a tree of measurements has four.
constexpr int kDeepest = 16;

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool IsRun(const fs::path& directory) {
  return Exists(directory / kLog) || Exists(directory / kTrainingJson) ||
         Exists(directory / kTrace);
}

bool IsDirectory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// By name; what cannot be read is a problem.
std::vector<fs::path> EntriesOf(const fs::path& directory, Diagnostics& diagnostics) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) {
    diagnostics.Problem(directory.string() + ": cannot be read: " + error.message(), EX_NOINPUT);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

fs::path IfThere(const fs::path& path) { return Exists(path) ? path : fs::path(); }

void AddSideFiles(const std::vector<fs::path>& entries, RunFiles& files) {
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    if (name.starts_with("ddltraind-rank-") && name.ends_with(".prom")) {
      files.prometheus.push_back(entry);
    } else if (name.ends_with(".csv")) {
      files.gpu_samples.push_back(entry);
    }
  }
}

RunFiles FilesOf(const fs::path& directory, Diagnostics& diagnostics) {
  RunFiles files;
  files.path = directory.string();
  files.log = IfThere(directory / kLog);
  files.training_json = IfThere(directory / kTrainingJson);
  files.trace = IfThere(directory / kTrace);
  const std::vector<fs::path> entries = EntriesOf(directory, diagnostics);
  AddSideFiles(entries, files);
  for (const fs::path& entry : entries) {
    if (IsDirectory(entry) && !IsRun(entry)) AddSideFiles(EntriesOf(entry, diagnostics), files);
  }
  return files;
}

class Search {
 public:
  explicit Search(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void Add(const std::string& named) {
    std::error_code error;
    fs::path path = named;
    while (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      diagnostics_.Problem(named + ": there is no such directory; give the --results_dir of a run",
                           EX_NOINPUT);
      return;
    }
    if (fs::is_directory(status)) {
      if (!AddDirectory(path, 0)) {
        diagnostics_.Problem(
            named +
            ": there is no run in it: no log.json, training.json or trace.json, as "
            "ddltraind leaves in its --results_dir");
      }
    } else if (path.filename() == kLog && path.has_parent_path()) {
      AddRun(FilesOf(path.parent_path(), diagnostics_));
    } else {
      RunFiles files;
      files.path = path.string();
      files.log = path;
      AddRun(std::move(files));
    }
  }

  std::vector<RunFiles> runs;

 private:
  // Whether there is a run.
  bool AddDirectory(const fs::path& directory, int depth) {
    if (IsRun(directory)) {
      AddRun(FilesOf(directory, diagnostics_));
      return true;
    }
    bool has_run = false;
    if (depth == kDeepest) return has_run;
    for (const fs::path& entry : EntriesOf(directory, diagnostics_)) {
      if (IsDirectory(entry) && AddDirectory(entry, depth + 1)) has_run = true;
    }
    return has_run;
  }

  void AddRun(RunFiles files) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(files.path, error);
    if (known_.insert(error ? fs::path(files.path) : real).second) {
      runs.push_back(std::move(files));
    } else {
      diagnostics_.Note(files.path + " is named twice; it counts once");
    }
  }

  Diagnostics& diagnostics_;
  std::set<fs::path> known_;
};

}  // namespace

std::vector<RunFiles> FindRuns(const std::vector<std::string>& paths, Diagnostics& diagnostics) {
  Search search(diagnostics);
  for (const std::string& path : paths) search.Add(path);
  return std::move(search.runs);
}

}  // namespace bench
