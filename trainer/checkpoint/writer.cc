// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/writer.h"

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/names.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

constexpr char kInstead[] = "another --model_dir (checkpoints already there are intact)";

// A directory of ours that is removed unless it got its final name.
class TemporaryDirectory {
 public:
  TemporaryDirectory(fs::path path, const WriteContext& context) : path_(std::move(path)) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);  // of an earlier process with our number
    MakeNewDirectory(path_, context);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const fs::path& path() const { return path_; }
  void RenameTo(const fs::path& final_path, const WriteContext& context) {
    Rename(path_, final_path, context);
    path_.clear();
  }

 private:
  fs::path path_;
};

// One safetensors file, ready to be written: views of the caller's tensors behind a header.
struct PreparedFile {
  std::string header;
  std::vector<Bytes> data;  // in the order of the file
  ManifestFile manifest;
};

PreparedFile Prepare(const char* name, std::span<const TensorReader> tensors) {
  PreparedFile file;
  file.header = MakeSafetensorsHeader(tensors);
  file.manifest.name = name;
  file.manifest.bytes = file.header.size();
  file.manifest.header_crc32c = Crc32c(std::as_bytes(std::span(file.header)));
  for (const std::size_t position : DataOrder(tensors)) {
    const TensorReader& tensor = tensors[position];
    const Bytes bytes(static_cast<const std::byte*>(tensor.data),
                      static_cast<std::size_t>(tensor.shape.elements()) * SizeOf(tensor.dtype));
    file.data.push_back(bytes);
    file.manifest.bytes += bytes.size();
    file.manifest.tensors.push_back(
        {.name = tensor.name, .bytes = bytes.size(), .crc32c = Crc32c(bytes)});
  }
  return file;
}

void WritePrepared(const fs::path& directory, const PreparedFile& file,
                   const WriteContext& context) {
  std::vector<Bytes> pieces = {std::as_bytes(std::span(file.header))};
  pieces.insert(pieces.end(), file.data.begin(), file.data.end());
  WriteNewFile(directory / file.manifest.name, pieces, context);
}

// The manifest of the checkpoint in `directory` if there is one and all of it is valid.
std::optional<Manifest> ReadIfValid(const fs::path& directory) {
  try {
    return ReadCheckpoint(directory).manifest;
  } catch (const Error& problem) {
    if (!IsUnusable(problem)) throw;
    return std::nullopt;
  }
}

}  // namespace

fs::path WriteCheckpoint(const fs::path& model_dir, const CheckpointState& state,
                         const CheckpointTensors& tensors, const WriteHook& hook) {
  const DelayedEnd delayed;
  std::vector<PreparedFile> files;
  files.push_back(Prepare(kModelFile, tensors.model));
  files.push_back(Prepare(kOptimizerFile, tensors.optimizer));
  if (!tensors.average.empty()) files.push_back(Prepare(kAverageFile, tensors.average));
  Manifest manifest{state, {}};
  for (const PreparedFile& file : files) manifest.files.push_back(file.manifest);

  const fs::path parent = CheckpointsDirectory(model_dir);
  const fs::path final_path = parent / CheckpointName(state.step);
  const WriteContext context{hook, kInstead};
  MakeDirectories(parent, context);
  if (std::optional<Manifest> present = ReadIfValid(final_path)) {
    // It may have been evaluated since.
    const std::optional<double> top1 = std::exchange(present->state.top1, state.top1);
    if (*present == manifest) {
      if (state.top1 && state.top1 != top1) NoteTop1(final_path, *state.top1, hook);
      return final_path;
    }
    throw Error(EX_DATAERR, final_path.string() +
                                ": a checkpoint of another run is there; give each run a "
                                "--model_dir of its own");
  }

  TemporaryDirectory temporary(parent / TemporaryName(state.step), context);
  for (const PreparedFile& file : files) WritePrepared(temporary.path(), file, context);
  const std::string text = ToJson(manifest);
  const Bytes text_bytes = std::as_bytes(std::span(text));
  WriteNewFile(temporary.path() / kManifestFile, std::span(&text_bytes, 1), context);
  SyncDirectory(temporary.path(), context);
  SetAside(final_path);  // there is only an unusable one, if any
  temporary.RenameTo(final_path, context);
  SyncDirectory(parent, context);
  return final_path;
}

int RemoveStaleCheckpoints(const fs::path& model_dir) {
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(CheckpointsDirectory(model_dir), error), end;
       !error && entry != end; entry.increment(error)) {
    const auto owner = ParseTemporaryName(entry->path().filename().string());
    if (owner && IsStale(entry->path(), *owner)) stale.push_back(entry->path());
  }
  int removed = 0;
  for (const fs::path& path : stale) {
    fs::remove_all(path, error);
    if (!error) ++removed;
  }
  return removed;
}

}  // namespace trainer
