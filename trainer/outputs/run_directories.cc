// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/run_directories.h"

#include <string_view>
#include <system_error>

#include "support/file.h"
#include "support/number.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"

namespace trainer {

void TryToWrite(const std::filesystem::path& file, std::string_view instead) {
  const WriteHook no_hook;
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw Error(EX_OSERR, "cannot write " + file.string() + ": it is a directory; give " +
                              std::string(instead));
  }
  RemoveStalePartials(file);
  const std::filesystem::path partial = PartialName(file);
  std::filesystem::remove(partial, ignored);  // of an earlier process with our number
  WriteNewFile(partial, {}, {no_hook, instead});
  std::filesystem::remove(partial, ignored);
}

void MakeDirectory(const std::filesystem::path& directory, const std::string& option) {
  const std::string obstacle = support::MakeDirectories(directory);
  if (!obstacle.empty()) {
    throw Error(EX_OSERR, "cannot make the directory '" + directory.string() + "': " + obstacle +
                              "; give another " + option);
  }
}

std::unique_ptr<RunLock> PrepareDirectories(const TrainConfig& config,
                                            const RunLockOptions& lock_options, const Logger& log) {
  MakeDirectory(config.results_dir, "--results_dir");
  if (config.trace.count > 0) TryToWrite(TracePath(config), "another --results_dir");
  if (config.profile.count > 0) {
    for (const char* name : {"profile.csv", "profile.json"}) {
      TryToWrite(config.results_dir / name, "another --results_dir");
    }
  }
  std::unique_ptr<RunLock> lock;
  if (KeepsWeights(config.mode)) lock = LockRun(ModelDirectory(config), lock_options);
  if (!config.export_dir.empty() && ExportsWeights(config.mode)) {
    MakeDirectory(config.export_dir, "--export_dir");
    TryToWrite(ExportFile(config), "another --export_dir");
  }
  if (!KeepsWeights(config.mode)) return nullptr;
  const int removed = RemoveStaleCheckpoints(ModelDirectory(config));
  if (removed > 0) {
    log->info("removed {} of a run that died", support::Counted(removed, "unfinished checkpoint"));
  }
  if (!config.dump_state.empty()) TryToWrite(config.dump_state, "another --dump_state");
  return lock;
}

}  // namespace trainer
