// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/read_run.h"

#include <iterator>

#include "bench/report/readers/gpu_samples_reader.h"
#include "bench/report/readers/log_reader.h"
#include "bench/report/readers/rank_times_reader.h"
#include "bench/report/readers/training_json_reader.h"
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

}  // namespace bench
