// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/retention.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

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

EvaluatedCheckpoints ListEvaluated(const fs::path& model_dir) {
  EvaluatedCheckpoints evaluated;
  for (const auto& [step, directory] : ListCheckpoints(model_dir)) {
    try {
      const std::optional<Manifest> manifest = ReadManifestIfWhole(directory);
      if (!manifest || !manifest->state.top1) continue;
      const CheckpointState& state = manifest->state;
      evaluated.known.push_back({step, directory, *state.top1, state.data.validation});
    } catch (const Error&) {
      evaluated.unreadable.push_back(directory);
    }
  }
  return evaluated;
}

std::vector<EvaluatedCheckpoint> EvaluatedOn(const SplitIdentity& validation,
                                             std::vector<EvaluatedCheckpoint> evaluated) {
  std::erase_if(evaluated, [&](const EvaluatedCheckpoint& checkpoint) {
    return IsOtherData(checkpoint.validation, validation);
  });
  return evaluated;
}

std::optional<EvaluatedCheckpoint> BestOf(const std::vector<EvaluatedCheckpoint>& evaluated) {
  const EvaluatedCheckpoint* newest = nullptr;
  for (const EvaluatedCheckpoint& checkpoint : evaluated) {
    const bool is_known = checkpoint.validation != SplitIdentity();
    if (is_known && (newest == nullptr || checkpoint.step > newest->step)) newest = &checkpoint;
  }
  const SplitIdentity validation = newest == nullptr ? SplitIdentity() : newest->validation;
  std::optional<EvaluatedCheckpoint> best;
  for (const EvaluatedCheckpoint& checkpoint : EvaluatedOn(validation, evaluated)) {
    const bool is_better = !best || checkpoint.top1 > best->top1 ||
                           (checkpoint.top1 == best->top1 && checkpoint.step < best->step);
    if (is_better) best = checkpoint;
  }
  return best;
}

void NoteTop1(const fs::path& checkpoint, double top1, const WriteHook& hook,
              const SplitIdentity& validation) {
  Manifest manifest = ReadManifest(checkpoint);
  const CheckpointState before = manifest.state;
  manifest.state.top1 = top1;
  if (validation != SplitIdentity()) manifest.state.data.validation = validation;
  if (manifest.state == before) return;
  const fs::path path = checkpoint / kManifestFile;
  const WriteContext context{hook, "another --model_dir"};
  const std::string text = ToJson(manifest);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  ReplaceFile(path, std::span(&bytes, 1), context);
  SyncDirectory(checkpoint, context);
}

namespace {

constexpr char kPartial[] = ".partial-";

// The number alone is of a version that did not write the host: of this one, as far as is known.
std::optional<TemporaryOwner> OwnerOfPartial(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string rest = name.substr(prefix.size());
  return ParseOwner(rest.find('-') == std::string::npos ? HostName() + "-" + rest : rest);
}

}  // namespace

bool IsStale(const fs::path& path, const TemporaryOwner& owner) {
  if (owner.host == HostName() && ::kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) {
    return true;
  }
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  fs::file_time_type newest = fs::last_write_time(path, error);
  if (!error && fs::is_directory(path, error)) {
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      newest = std::max(newest, entry->last_write_time(error));
      if (error) break;
    }
  }
  return !error && now - newest > std::chrono::hours(1);
}

fs::path PartialName(const fs::path& path) {
  fs::path partial = path;
  partial += kPartial + HostName() + "-" + std::to_string(::getpid());
  return partial;
}

int RemoveStalePartials(const fs::path& path) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const std::string prefix = path.filename().string() + kPartial;
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto owner = OwnerOfPartial(entry->path().filename().string(), prefix);
    if (owner && IsStale(entry->path(), *owner)) stale.push_back(entry->path());
  }
  int removed = 0;
  for (const fs::path& one : stale) {
    if (fs::remove(one, error)) ++removed;
  }
  return removed;
}

void ReplaceFile(const fs::path& path, std::span<const std::span<const std::byte>> pieces,
                 const WriteContext& context) {
  RemoveStalePartials(path);
  const fs::path partial = PartialName(path);
  std::error_code ignored;
  fs::remove(partial, ignored);  // of an earlier process with our number
  try {
    WriteNewFile(partial, pieces, context);
    Rename(partial, path, context);
  } catch (...) {
    // The first error is the one to tell.
    fs::remove(partial, ignored);
    throw;
  }
}

}  // namespace trainer
