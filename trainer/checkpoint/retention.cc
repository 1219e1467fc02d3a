// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/retention.h"

#include <algorithm>
#include <system_error>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/names.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Looks whole, without reading the tensors.
bool LooksIntact(const fs::path& directory) {
  try {
    const Manifest manifest = ReadManifest(directory);
    return std::ranges::all_of(manifest.files, [&](const ManifestFile& file) {
      std::error_code ignored;  // no file is as long as what file_size gives for one that is gone
      return fs::file_size(directory / file.name, ignored) == file.bytes;
    });
  } catch (const Error&) {
    return false;
  }
}

// Under a hidden name first, so that a crash half way leaves nothing that looks like a checkpoint.
void Remove(const CheckpointPath& checkpoint) {
  const fs::path hidden = checkpoint.directory.parent_path() / TemporaryName(checkpoint.step);
  Rename(checkpoint.directory, hidden, {});
  std::error_code error;
  fs::remove_all(hidden, error);
  if (error) throw OsError("cannot remove " + hidden.string(), error.value());
}

}  // namespace

std::vector<fs::path> PruneCheckpoints(const fs::path& model_dir, const fs::path& durable,
                                       int keep) {
  DDL_CHECK(keep >= 1);
  std::vector<fs::path> removed;
  int kept = 0;
  for (const CheckpointPath& checkpoint : ListCheckpoints(model_dir)) {
    const bool is_durable = checkpoint.directory.filename() == durable.filename();
    if (kept < keep) {
      if (is_durable || LooksIntact(checkpoint.directory)) ++kept;
    } else if (!is_durable) {
      Remove(checkpoint);
      removed.push_back(checkpoint.directory);
    }
  }
  return removed;
}

}  // namespace trainer
