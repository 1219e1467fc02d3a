// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/run_files.h"

#include <algorithm>
#include <set>
#include <system_error>

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr char kLog[] = "log.json";
constexpr char kTrainingJson[] = "training.json";
constexpr char kTrace[] = "trace.json";
// Of a folder within a folder; a tree of measurements has four.
constexpr int kDeepest = 16;

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool IsRun(const fs::path& folder) {
  return Exists(folder / kLog) || Exists(folder / kTrainingJson) || Exists(folder / kTrace);
}

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// By name; what cannot be read is a problem.
std::vector<fs::path> EntriesOf(const fs::path& folder, Diagnostics& diagnostics) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) {
    diagnostics.Problem(folder.string() + ": cannot be read: " + error.message(), EX_NOINPUT);
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

RunFiles FilesOf(const fs::path& folder, Diagnostics& diagnostics) {
  RunFiles files;
  files.path = folder.string();
  files.log = IfThere(folder / kLog);
  files.training_json = IfThere(folder / kTrainingJson);
  files.trace = IfThere(folder / kTrace);
  const std::vector<fs::path> entries = EntriesOf(folder, diagnostics);
  AddSideFiles(entries, files);
  for (const fs::path& entry : entries) {
    if (IsFolder(entry) && !IsRun(entry)) AddSideFiles(EntriesOf(entry, diagnostics), files);
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
      diagnostics_.Problem(named + ": there is no such folder; give the --results_dir of a run",
                           EX_NOINPUT);
      return;
    }
    if (fs::is_directory(status)) {
      if (!AddFolder(path, 0)) {
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
  bool AddFolder(const fs::path& folder, int depth) {
    if (IsRun(folder)) {
      AddRun(FilesOf(folder, diagnostics_));
      return true;
    }
    bool has_run = false;
    if (depth == kDeepest) return has_run;
    for (const fs::path& entry : EntriesOf(folder, diagnostics_)) {
      if (IsFolder(entry) && AddFolder(entry, depth + 1)) has_run = true;
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
