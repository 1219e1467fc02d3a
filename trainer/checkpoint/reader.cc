// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/reader.h"

#include <algorithm>
#include <system_error>

#include "trainer/checkpoint/manifest.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// A manifest has about 100 bytes for each tensor.
constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{64} << 20;

[[noreturn]] void Damaged(const std::string& path, const std::string& what) {
  throw Error(EX_DATAERR, path + ": damaged: " + what);
}

// `directory` is where `manifest` was read.
const ManifestFile& FileOf(const Manifest& manifest, const char* name, const fs::path& directory) {
  const auto found = std::ranges::find(manifest.files, name, &ManifestFile::name);
  if (found == manifest.files.end()) {
    Damaged((directory / kManifestFile).string(), std::string("it does not list ") + name);
  }
  return *found;
}

void Verify(const SafetensorsFile& file, const ManifestFile& expected) {
  std::uint64_t data_bytes = 0;
  for (const ManifestTensor& want : expected.tensors) {
    const TensorEntry* have = file.Find(want.name);
    if (have == nullptr) Damaged(file.path(), "tensor '" + want.name + "' is missing");
    const auto data = file.Data(*have);
    if (data.size() != want.bytes || Crc32c(data) != want.crc32c) {
      Damaged(file.path(), "tensor '" + want.name + "' has the wrong checksum");
    }
    data_bytes += data.size();
  }
  const std::size_t header_bytes = file.bytes().size() - data_bytes;
  if (file.tensors().size() != expected.tensors.size() ||
      Crc32c(file.bytes().first(header_bytes)) != expected.header_crc32c) {
    Damaged(file.path(), "its header has the wrong checksum");
  }
}

void RequireSize(const std::string& path, const ManifestFile& expected) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) {
    throw Error(EX_DATAERR, path + ": No such file or directory");
  }
  if (error) throw OsError("cannot read the size of " + path, error.value());
  if (size != expected.bytes) {
    Damaged(path, "it has " + std::to_string(size) + " bytes instead of " +
                      std::to_string(expected.bytes));
  }
}

// Throws where the directory has the name of another step.
void RequireStep(const fs::path& directory, const Manifest& manifest) {
  if (CheckpointName(manifest.state.step) == directory.filename().string()) return;
  Damaged(directory.string(), "its manifest is of step " + std::to_string(manifest.state.step));
}

SafetensorsFile ReadVerified(const fs::path& directory, const Manifest& manifest,
                             const char* name) {
  const ManifestFile& expected = FileOf(manifest, name, directory);
  const std::string path = (directory / name).string();
  RequireSize(path, expected);
  SafetensorsFile file = SafetensorsFile::Read(path);
  Verify(file, expected);
  return file;
}

}  // namespace

bool IsUnusable(const Error& problem) {
  const bool is_shortage = dynamic_cast<const Shortage*>(&problem) != nullptr;
  return !is_shortage && (problem.exit_code() == EX_DATAERR || problem.exit_code() == EX_OSERR);
}

Manifest ReadManifest(const fs::path& directory) {
  const std::string path = (directory / kManifestFile).string();
  return ParseManifest(ReadWholeFile(path, kMaxManifestBytes), path);
}

Manifest ReadManifestOfWhole(const fs::path& directory) {
  Manifest manifest = ReadManifest(directory);
  RequireStep(directory, manifest);
  for (const ManifestFile& file : manifest.files) {
    RequireSize((directory / file.name).string(), file);
  }
  return manifest;
}

std::optional<Manifest> ReadManifestIfWhole(const fs::path& directory) {
  try {
    return ReadManifestOfWhole(directory);
  } catch (const Error& problem) {
    if (problem.exit_code() != EX_DATAERR) throw;
    return std::nullopt;
  }
}

void RequireDirectory(const fs::path& model_dir) {
  std::error_code error;
  if (!fs::exists(model_dir, error) || error || fs::is_directory(model_dir, error)) return;
  throw Error(EX_USAGE, "'" + model_dir.string() +
                            "' is a file, not the directory of a run (a file of weights is for "
                            "ddltraind's --init_from)");
}

namespace {

bool IsCheckpoint(const fs::path& directory) {
  std::error_code ignored;
  return ParseCheckpointName(directory.filename().string()) &&
         fs::exists(directory / kManifestFile, ignored);
}

}  // namespace

std::string DescribeMisplaced(const fs::path& model_dir) {
  std::error_code error;
  fs::path directory = fs::absolute(model_dir, error).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  if (error || fs::exists(CheckpointsDirectory(directory), error)) return "";
  const bool is_one = IsCheckpoint(directory);
  fs::path with = is_one ? directory.parent_path() : fs::path();
  for (fs::directory_iterator entry(directory, error), end; !error && with.empty() && entry != end;
       entry.increment(error)) {
    if (IsCheckpoint(entry->path())) with = directory;
  }
  if (with.empty()) return "";
  const std::string what = "'" + model_dir.string() +
                           (is_one ? "' is a checkpoint" : "' has the checkpoints") + " of a run: ";
  if (CheckpointsDirectory(with.parent_path()) == with) {
    return what + "give the directory of the run, " + with.parent_path().string();
  }
  return what + "move " + (is_one ? "it" : "them") + " to " + CheckpointsDirectory(with).string() +
         ", and give " + with.string();
}

std::vector<CheckpointPath> ListCheckpoints(const fs::path& model_dir) {
  RequireDirectory(model_dir);
  std::vector<CheckpointPath> found;
  std::error_code error;
  const fs::path parent = CheckpointsDirectory(model_dir);
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto step = ParseCheckpointName(entry->path().filename().string());
    if (step) found.push_back({*step, entry->path()});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw OsError("cannot read the directory " + parent.string(), error.value());
  }
  std::ranges::sort(found, std::greater<>(), &CheckpointPath::step);
  return found;
}

Checkpoint ReadCheckpoint(const fs::path& directory) {
  Checkpoint checkpoint;
  checkpoint.directory = directory;
  checkpoint.manifest = ReadManifest(directory);
  RequireStep(directory, checkpoint.manifest);
  checkpoint.model = ReadVerified(directory, checkpoint.manifest, kModelFile);
  checkpoint.optimizer = ReadVerified(directory, checkpoint.manifest, kOptimizerFile);
  const std::vector<ManifestFile>& files = checkpoint.manifest.files;
  if (std::ranges::find(files, kAverageFile, &ManifestFile::name) != files.end()) {
    checkpoint.average = ReadVerified(directory, checkpoint.manifest, kAverageFile);
  }
  return checkpoint;
}

namespace {

// "5, 10 and 15", the newest of many.
std::string StepsOf(const std::vector<CheckpointPath>& newest_first) {
  constexpr std::size_t kNamed = 10;
  const std::size_t named = std::min(newest_first.size(), kNamed);
  std::string text;
  for (std::size_t i = named; i-- > 0;) {
    text += std::to_string(newest_first[i].step);
    if (i > 0) text += i == 1 ? " and " : ", ";
  }
  return named < newest_first.size() ? "..., " + text : text;
}

}  // namespace

Checkpoint ReadCheckpointOfStep(const fs::path& model_dir, std::int64_t step) {
  const std::vector<CheckpointPath> there = ListCheckpoints(model_dir);
  const auto wanted = std::ranges::find(there, step, &CheckpointPath::step);
  if (wanted == there.end()) {
    throw Error(EX_USAGE, CheckpointsDirectory(model_dir).string() + " has no checkpoint of step " +
                              std::to_string(step) +
                              (there.empty() ? ", nor of any other"
                                             : "; it has those of step " + StepsOf(there)));
  }
  Checkpoint checkpoint = ReadCheckpoint(wanted->directory);
  for (auto newer = there.begin(); newer != wanted; ++newer) {
    checkpoint.passed_over.push_back(newer->directory);
  }
  return checkpoint;
}

std::optional<Checkpoint> ReadNewestCheckpoint(
    const fs::path& model_dir, const std::function<void(const std::string&)>& warn) {
  std::vector<fs::path> passed_over;
  int exit_code = EX_DATAERR;
  for (const CheckpointPath& candidate : ListCheckpoints(model_dir)) {
    try {
      Checkpoint checkpoint = ReadCheckpoint(candidate.directory);
      checkpoint.passed_over = std::move(passed_over);
      return checkpoint;
    } catch (const Error& problem) {
      if (problem.exit_code() == EX_CONFIG) {
        throw Error(EX_CONFIG, std::string(problem.what()) +
                                   "; or, to resume from the checkpoint before it, move " +
                                   candidate.directory.string() + " away");
      }
      if (!IsUnusable(problem)) throw;
      if (problem.exit_code() != EX_DATAERR) exit_code = problem.exit_code();
      warn(std::string(problem.what()) + "; passed over for the checkpoint before it");
      passed_over.push_back(candidate.directory);
    }
  }
  if (passed_over.empty()) return std::nullopt;
  throw Error(exit_code, CheckpointsDirectory(model_dir).string() + ": none of its " +
                             std::to_string(passed_over.size()) + " checkpoints " +
                             (exit_code == EX_DATAERR ? "is valid" : "can be read") +
                             "; to start anew, move that directory away or give another "
                             "--model_dir");
}

}  // namespace trainer
