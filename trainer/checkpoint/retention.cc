// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/retention.h"

#include <algorithm>
#include <cstdint>
#include <system_error>

#include "trainer/checkpoint/evaluated.h"
#include "trainer/checkpoint/names.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Under a hidden name first, so that a crash half way leaves nothing that looks like a checkpoint.
void Remove(const fs::path& checkpoint, std::int64_t step) {
  const fs::path hidden = checkpoint.parent_path() / TemporaryName(step);
  std::error_code error;
  fs::rename(checkpoint, hidden, error);
  if (!error) fs::remove_all(hidden, error);
  if (error) throw OsError("cannot remove " + checkpoint.string(), error.value());
}

// What SetAside has left of steps before `oldest`.
std::vector<CheckpointPath> UnusableBefore(std::int64_t oldest, const fs::path& parent) {
  std::vector<CheckpointPath> found;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto step = ParseUnusableName(entry->path().filename().string());
    if (step && *step < oldest) found.push_back({*step, entry->path()});
  }
  return found;
}

// The best stays: there may be no better one for long.  So does what may be the best.
void LeaveOutBest(std::vector<CheckpointPath>& superfluous, const fs::path& model_dir) {
  if (superfluous.empty()) return;
  const EvaluatedCheckpoints evaluated = ListEvaluated(model_dir);
  const auto best = BestOf(evaluated.known);
  std::erase_if(superfluous, [&](const CheckpointPath& checkpoint) {
    return (best && checkpoint.directory == best->directory) ||
           std::ranges::count(evaluated.unreadable, checkpoint.directory) > 0;
  });
}

// Whether it can be gone on from, as far as its manifest tells.
bool IsWhole(const fs::path& checkpoint) {
  try {
    return ReadManifestIfWhole(checkpoint).has_value();
  } catch (const Error&) {
    return false;
  }
}

// Those to be removed.
std::vector<CheckpointPath> Superfluous(const fs::path& model_dir, const fs::path& durable,
                                        const Retention& retention) {
  std::vector<CheckpointPath> superfluous;
  int kept = 0;
  std::int64_t oldest_kept = 0;
  for (const CheckpointPath& checkpoint : ListCheckpoints(model_dir)) {
    const bool is_durable = checkpoint.directory.filename() == durable.filename();
    if (kept < retention.newest) {
      if (is_durable || IsWhole(checkpoint.directory)) ++kept;
      oldest_kept = checkpoint.step;
    } else if (!is_durable && !IsKeptForEver(checkpoint.step, retention)) {
      superfluous.push_back(checkpoint);
    }
  }
  LeaveOutBest(superfluous, model_dir);
  if (kept < retention.newest) return superfluous;
  for (CheckpointPath& unusable : UnusableBefore(oldest_kept, CheckpointsDirectory(model_dir))) {
    superfluous.push_back(std::move(unusable));
  }
  return superfluous;
}

}  // namespace

bool IsKeptForEver(std::int64_t step, const Retention& retention) {
  const std::int64_t every = retention.checkpoint_every;
  return step > 0 && every > 0 && retention.keep_every > 0 && step % every == 0 &&
         step / every % retention.keep_every == 0;
}

std::vector<fs::path> PruneCheckpoints(const fs::path& model_dir, const fs::path& durable,
                                       const Retention& retention,
                                       const std::function<void(const std::string&)>& warn) {
  DDL_CHECK(retention.newest >= 1);
  std::vector<fs::path> removed;
  try {
    for (const CheckpointPath& checkpoint : Superfluous(model_dir, durable, retention)) {
      try {
        Remove(checkpoint.directory, checkpoint.step);
        removed.push_back(checkpoint.directory);
      } catch (const Error& problem) {
        warn(problem.what());
      }
    }
  } catch (const Error& problem) {
    warn(std::string(problem.what()) + ": old checkpoints stay there");
  }
  return removed;
}

std::optional<fs::path> SetAside(const fs::path& checkpoint) {
  constexpr int kMaxNames = 9;
  const auto step = ParseCheckpointName(checkpoint.filename().string());
  DDL_CHECK(step.has_value());
  std::error_code error;
  if (!fs::exists(fs::symlink_status(checkpoint, error))) return std::nullopt;
  for (int count = 1; count <= kMaxNames; ++count) {
    const fs::path name = checkpoint.parent_path() / UnusableName(*step, count);
    if (fs::exists(fs::symlink_status(name, error))) continue;
    fs::rename(checkpoint, name, error);
    return error ? std::nullopt : std::optional(name);
  }
  return std::nullopt;
}

}  // namespace trainer
