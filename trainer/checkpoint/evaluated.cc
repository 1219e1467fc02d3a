// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/evaluated.h"

#include <cstddef>
#include <span>
#include <string>
#include <system_error>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/names.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/stale.h"
#include "trainer/core/error.h"

namespace trainer {

namespace fs = std::filesystem;

EvaluatedCheckpoints ListEvaluated(const fs::path& model_dir) {
  EvaluatedCheckpoints evaluated;
  for (const auto& [step, directory] : ListCheckpoints(model_dir)) {
    try {
      const std::optional<Manifest> manifest = ReadManifestIfWhole(directory);
      if (!manifest || !manifest->state.top1) continue;
      evaluated.known.push_back({step, directory, *manifest->state.top1});
    } catch (const Error&) {
      evaluated.unreadable.push_back(directory);
    }
  }
  return evaluated;
}

std::optional<EvaluatedCheckpoint> BestOf(const std::vector<EvaluatedCheckpoint>& evaluated) {
  std::optional<EvaluatedCheckpoint> best;
  for (const EvaluatedCheckpoint& checkpoint : evaluated) {
    const bool is_better = !best || checkpoint.top1 > best->top1 ||
                           (checkpoint.top1 == best->top1 && checkpoint.step < best->step);
    if (is_better) best = checkpoint;
  }
  return best;
}

void NoteTop1(const fs::path& checkpoint, double top1, const WriteHook& hook) {
  Manifest manifest = ReadManifest(checkpoint);
  if (manifest.state.top1 == top1) return;
  manifest.state.top1 = top1;
  const fs::path path = checkpoint / kManifestFile;
  const WriteContext context{hook, "another --model_dir"};
  RemoveStalePartials(path);
  const fs::path partial = PartialName(path);
  std::error_code ignored;
  fs::remove(partial, ignored);  // of an earlier process with our number
  const std::string text = ToJson(manifest);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  try {
    WriteNewFile(partial, std::span(&bytes, 1), context);
    Rename(partial, path, context);
  } catch (...) {
    fs::remove(partial, ignored);
    throw;
  }
  SyncDirectory(checkpoint, context);
}

}  // namespace trainer
