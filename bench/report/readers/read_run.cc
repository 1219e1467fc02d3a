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
void Try(Complaints& complaints, const Read& read) {
  try {
    read();
  } catch (const trainer::Error& error) {
    complaints.Problem(error.what(), error.exit_code());
  }
}

void ReadGpus(const std::vector<std::filesystem::path>& paths, RunRecord& run,
              Complaints& complaints) {
  for (const std::filesystem::path& path : paths) {
    Try(complaints, [&] {
      std::vector<GpuSamples> gpus = ReadGpuSamples(path, complaints);
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

std::optional<RunRecord> ReadRun(const RunFiles& files, int skip_steps, Complaints& complaints) {
  RunRecord run;
  run.path = files.path;
  if (!files.log.empty()) {
    Try(complaints, [&] { ReadRunLog(files.log, skip_steps, run, complaints); });
  }
  if (run.measures.last_step < 0 && !files.training_json.empty()) {
    ReadTrainingJson(files.training_json, run, complaints);
  }
  if (!files.trace.empty()) {
    Try(complaints, [&] {
      run.times = ReadTrace(files.trace, complaints);
      run.times_from = "trace.json";
    });
  }
  if (run.times.empty()) {
    run.times_from = "files for Prometheus";
    for (const std::filesystem::path& path : files.prometheus) {
      Try(complaints, [&] { ReadPrometheusFile(path, run.times, complaints); });
    }
  }
  if (run.times.empty()) run.times_from.clear();
  ReadGpus(files.gpu_samples, run, complaints);
  if (run.ranks == 0) run.ranks = static_cast<std::int64_t>(run.times.size());
  if (IsEmpty(run)) return std::nullopt;
  if (run.measures.last_step < 0) {
    complaints.Note(run.path +
                    ": it has no step, so there is no speed; log.json begins with the 21st step of "
                    "a launch");
  }
  return run;
}

}  // namespace bench
