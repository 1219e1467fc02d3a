// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/checkpoints.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "ddlctl/status_text.h"
#include "support/number.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/clock.h"

namespace ddlctl {
namespace {

namespace fs = std::filesystem;
using trainer::CheckpointPath;
using trainer::Error;

std::vector<CheckpointPath> RequireCheckpoints(const fs::path& model_dir) {
  std::vector<CheckpointPath> found = trainer::ListCheckpoints(model_dir);
  if (found.empty()) {
    const std::string misplaced = trainer::DescribeMisplaced(model_dir);
    throw Error(EX_NOINPUT,
                fmt::format("there is no checkpoint in {} (no step-... in {}): {}",
                            model_dir.string(), trainer::CheckpointsDirectory(model_dir).string(),
                            misplaced.empty() ? "give the --model_dir, or the --results_dir, of a "
                                                "training"
                                              : misplaced));
  }
  return found;
}

CheckpointPath RequireCheckpoint(const fs::path& model_dir, std::int64_t step) {
  const std::vector<CheckpointPath> all = RequireCheckpoints(model_dir);
  const auto found = std::ranges::find(all, step, &CheckpointPath::step);
  if (found == all.end()) {
    throw Error(EX_NOINPUT,
                fmt::format("there is no checkpoint of step {} in {}: ddlctl checkpoint list {} "
                            "shows those that are there",
                            step, model_dir.string(), model_dir.string()));
  }
  return *found;
}

std::string BytesText(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::uint64_t BytesOf(const trainer::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const trainer::ManifestFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

std::size_t TensorsOf(const trainer::Manifest& manifest) {
  std::size_t tensors = 0;
  for (const trainer::ManifestFile& file : manifest.files) tensors += file.tensors.size();
  return tensors;
}

// When the manifest, the last of its files, was written.
std::string TimeText(const fs::path& checkpoint) {
  struct stat info = {};
  if (::stat((checkpoint / trainer::kManifestFile).c_str(), &info) != 0) return "?";
  return trainer::IsoTime(trainer::TimePoint(std::chrono::seconds(info.st_mtim.tv_sec)));
}

using TableRow = std::array<std::string, 7>;

TableRow RowOf(const CheckpointPath& checkpoint) {
  const std::string step = std::to_string(checkpoint.step);
  try {
    const trainer::Manifest manifest = trainer::ReadManifestOfWhole(checkpoint.directory);
    const trainer::CheckpointState& state = manifest.state;
    return {step,
            std::to_string(state.epoch),
            BytesText(BytesOf(manifest)),
            TimeText(checkpoint.directory),
            Harmless(state.architecture),
            Harmless(state.program_version),
            "whole"};
  } catch (const Error& problem) {
    return {step, "?", "?", TimeText(checkpoint.directory), "?", "?", Harmless(problem.what())};
  }
}

// How one checkpoint was found: EX_OK, EX_DATAERR, EX_OSERR, or EX_CONFIG for a newer format.
int Verify(const CheckpointPath& checkpoint, const Output& good, const Output& bad) {
  const std::string head = fmt::format("step {}: ", checkpoint.step);
  try {
    const trainer::Checkpoint read = trainer::ReadCheckpoint(checkpoint.directory);
    const std::size_t tensors = TensorsOf(read.manifest);
    good(fmt::format("{}all checksums hold: {}, {}\n", head,
                     support::Counted(static_cast<long long>(tensors), "tensor"),
                     BytesText(BytesOf(read.manifest))));
    return EX_OK;
  } catch (const Error& problem) {
    const bool is_newer = problem.exit_code() == EX_CONFIG;
    if (!trainer::IsUnusable(problem) && !is_newer) throw;
    std::error_code ignored;
    if (!fs::exists(checkpoint.directory, ignored)) {
      good(head + "removed by its training meanwhile\n");
      return EX_OK;
    }
    bad(head + Harmless(problem.what()) + "\n");
    return problem.exit_code();
  }
}

// The checkpoint to be exported.
trainer::Checkpoint ReadForExport(const fs::path& model_dir, std::optional<std::int64_t> step,
                                  const Output& warn) {
  if (step) return trainer::ReadCheckpoint(RequireCheckpoint(model_dir, *step).directory);
  RequireCheckpoints(model_dir);
  std::optional<trainer::Checkpoint> newest = trainer::ReadNewestCheckpoint(
      model_dir, [&](const std::string& line) { warn(Harmless(line) + "\n"); });
  if (!newest) RequireCheckpoints(model_dir);
  DDL_CHECK(newest.has_value());
  return std::move(*newest);
}

[[noreturn]] void RejectToReplace(const fs::path& file) {
  throw Error(EX_USAGE,
              file.string() + " is there already, and is not replaced: give another name");
}

// Whole under another name first.
void WriteWeights(const trainer::Checkpoint& checkpoint, const fs::path& file) {
  const trainer::SafetensorsFile& weights =
      checkpoint.average ? *checkpoint.average : checkpoint.model;
  std::vector<trainer::TensorReader> sources;
  for (const trainer::TensorEntry& tensor : weights.tensors()) {
    sources.push_back({tensor.name, tensor.dtype, tensor.shape, weights.Data(tensor).data()});
  }
  const trainer::CheckpointState& state = checkpoint.manifest.state;
  const std::string header = trainer::MakeSafetensorsHeader(
      sources, trainer::MetadataOfWeights(state.architecture, state.data));
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(header))};
  for (const std::size_t i : trainer::DataOrder(sources)) {
    pieces.push_back(weights.Data(weights.tensors()[i]));
  }
  const trainer::WriteHook no_hook;
  const trainer::WriteContext context{no_hook, "another FILE"};
  trainer::RemoveStalePartials(file);
  const fs::path partial = trainer::PartialName(file);
  std::error_code ignored;
  fs::remove(partial, ignored);  // of an earlier process with our number
  bool is_new = false;
  try {
    trainer::WriteNewFile(partial, pieces, context);
    is_new = trainer::RenameIfNew(partial, file, context);
  } catch (const Error&) {
    fs::remove(partial, ignored);
    throw;
  }
  if (!is_new) {
    fs::remove(partial, ignored);
    RejectToReplace(file);
  }
  trainer::SyncDirectory(file.has_parent_path() ? file.parent_path() : ".", context);
}

}  // namespace

std::string CheckpointTable(const fs::path& model_dir) {
  std::vector<TableRow> rows = {
      {"STEP", "EPOCHS", "SIZE", "WRITTEN", "NETWORK", "DDLTRAIND", "STATE"}};
  for (const CheckpointPath& checkpoint : RequireCheckpoints(model_dir)) {
    rows.push_back(RowOf(checkpoint));
  }
  constexpr std::size_t kNumbers = 3;  // columns at the left, which end at the right
  std::array<std::size_t, std::tuple_size_v<TableRow>> widths = {};
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += i < kNumbers ? fmt::format("{:>{}}  ", row[i], widths[i])
                           : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += row.back() + "\n";
  }
  return text;
}

int VerifyCheckpoints(const fs::path& model_dir, std::optional<std::int64_t> step,
                      const Output& good, const Output& bad) {
  std::vector<CheckpointPath> checkpoints =
      step ? std::vector{RequireCheckpoint(model_dir, *step)} : RequireCheckpoints(model_dir);
  std::ranges::reverse(checkpoints);
  int worst = EX_OK;
  for (const CheckpointPath& checkpoint : checkpoints) {
    const int found = Verify(checkpoint, good, bad);
    if (worst != EX_DATAERR && found != EX_OK) worst = found;
  }
  return worst;
}

std::string ExportWeights(const fs::path& model_dir, std::optional<std::int64_t> step,
                          const fs::path& file, const Output& warn) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(file, ignored))) RejectToReplace(file);
  const trainer::Checkpoint checkpoint = ReadForExport(model_dir, step, warn);
  WriteWeights(checkpoint, file);
  return fmt::format("{} of step {} written: {}\n", checkpoint.average ? "EMA weights" : "weights",
                     checkpoint.manifest.state.step, file.string());
}

}  // namespace ddlctl
