// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/snapshot.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/counted.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"
#include "trainer/train/network_state.h"
#include "trainer/train/rank_statistics.h"
#include "trainer/train/state_dump.h"

namespace trainer {
namespace {

constexpr auto kValue = Network::Part::kValue;
constexpr auto kMomentum = Network::Part::kMomentum;
constexpr char kRankStatistics[] = "rank_statistics";

// As --precision has it.
std::string PrecisionOf(DType compute_type) {
  switch (compute_type) {
    case DType::kFloat16:
      return "fp16";
    case DType::kBFloat16:
      return "bf16";
    default:
      return "fp32";
  }
}

std::function<void(const std::string&)> Warn(const SnapshotParts& parts) {
  return [&parts](const std::string& line) { parts.log->warn("{}", line); };
}

bool IsRoot(const SnapshotParts& parts) { return parts.communicator.rank() == 0; }

std::int64_t GlobalBatch(const SnapshotParts& parts) {
  return parts.config.batch * parts.communicator.size();
}

std::int64_t StatisticCount(const Network& network) {
  std::int64_t count = 0;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) count += parameter.spec.shape.elements();
  }
  return count;
}

CheckpointState StateOf(const SnapshotParts& parts, std::int64_t step, const LossScale& loss_scale,
                        std::int64_t samples) {
  CheckpointState state;
  state.step = step;
  state.epoch = step * GlobalBatch(parts) / samples;
  state.epoch_samples = step * GlobalBatch(parts) % samples;
  state.world_size = parts.communicator.size();
  state.global_batch = GlobalBatch(parts);
  state.seed = parts.config.seed;
  state.architecture = parts.config.architecture;
  state.classes = parts.config.classes;
  state.loss_scale = loss_scale.scale();
  state.loss_scale_good_steps = loss_scale.good_steps();
  state.program_version = parts.config.program_version;
  state.precision = PrecisionOf(parts.compute_type);
  state.settings = parts.config.settings;
  return state;
}

void RefuseOtherNetworks(const SnapshotParts& parts, const Checkpoint& checkpoint) {
  const CheckpointState& state = checkpoint.manifest.state;
  const TrainConfig& config = parts.config;
  if (state.architecture != config.architecture || state.classes != config.classes) {
    throw Error(EX_DATAERR, checkpoint.directory.string() + " is of " + state.architecture +
                                " with " + std::to_string(state.classes) +
                                " classes, this run is " + config.architecture + " with " +
                                std::to_string(config.classes) +
                                ": give another --model_dir, or --arch=" + state.architecture +
                                " --classes=" + std::to_string(state.classes));
  }
}

// What keeps a training from going on to `last_step`.
void RefuseOtherRuns(const SnapshotParts& parts, const Checkpoint& checkpoint,
                     std::int64_t last_step) {
  const CheckpointState& state = checkpoint.manifest.state;
  const std::string directory = checkpoint.directory.string();
  if (state.global_batch != GlobalBatch(parts)) {
    throw Error(EX_CONFIG,
                directory + " was written with " + std::to_string(state.global_batch) +
                    " images in a step (" + support::Counted(state.world_size, "rank") +
                    "), this run has " + std::to_string(GlobalBatch(parts)) + " (" +
                    support::Counted(parts.communicator.size(), "rank") +
                    "): give a --batch_size that makes them equal, or start a new run in "
                    "another --model_dir with --init_from=" +
                    (checkpoint.directory / "model.safetensors").string());
  }
  if (state.step > last_step) {
    throw Error(EX_CONFIG, directory + " is after the end of this run, which is step " +
                               std::to_string(last_step) +
                               ": give a larger --num_iter, or another --model_dir; "
                               "--mode=evaluate takes its weights as they are");
  }
}

// "--lr_init 0.1 (now 0.2)" for each setting that is not the one of `state`.
std::string Changes(const CheckpointState& state, const SnapshotParts& parts) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& then, const std::string& now) {
    if (then != now)
      text.append(text.empty() ? "" : ", ").append(name + " " + then + " (now " + now + ")");
  };
  add("ranks", std::to_string(state.world_size), std::to_string(parts.communicator.size()));
  add("--seed", std::to_string(state.seed), std::to_string(parts.config.seed));
  add("version", state.program_version, parts.config.program_version);
  for (const auto& [name, now] : parts.config.settings) {
    const auto then = state.settings.find(name);
    if (then != state.settings.end()) add(name, then->second, now);
  }
  return text;
}

// Those that were passed over for `checkpoint` would be in the way when their steps come again.
void SetAsidePassedOver(const SnapshotParts& parts, const Checkpoint& checkpoint) {
  for (const std::filesystem::path& directory : checkpoint.passed_over) {
    if (const auto name = SetAside(directory)) parts.log->warn("it is now {}", name->string());
  }
}

// Rank 0: loads `checkpoint`.  Returns the rows of statistics, empty in a run of one rank.
std::vector<float> Load(const SnapshotParts& parts, const Checkpoint& checkpoint) {
  Network& network = parts.network;
  const int world_size = checkpoint.manifest.state.world_size;
  CheckTensors(checkpoint.model, ExpectedTensors(network, kValue));
  std::vector<ExpectedTensor> optimizer = ExpectedTensors(network, kMomentum);
  if (world_size > 1) {
    optimizer.push_back(
        {kRankStatistics, DType::kFloat32, Shape{world_size, StatisticCount(network)}, false});
  }
  CheckTensors(checkpoint.optimizer, optimizer);

  ImportPart(network, kValue, checkpoint.model, parts.stream);
  ImportPart(network, kMomentum, checkpoint.optimizer, parts.stream);
  if (world_size == 1) return {};
  return ReadValues(checkpoint.optimizer, *checkpoint.optimizer.Find(kRankStatistics));
}

// Whether the loss scale of `state` means something to this run: that of an fp32 run is 1, at which
// fp16 gradients vanish and nothing is left to halve.
bool TakesLossScale(const SnapshotParts& parts, const CheckpointState& state) {
  if (state.precision.empty()) return state.loss_scale > 1;
  return state.precision == PrecisionOf(parts.compute_type);
}

// Rank 0: a training goes on from `checkpoint`, which has been loaded.
void GoOn(const SnapshotParts& parts, const Checkpoint& checkpoint) {
  const CheckpointState& state = checkpoint.manifest.state;
  parts.log->info("going on from step {}: {}", state.step, checkpoint.directory.string());
  const std::string changes = Changes(state, parts);
  if (!changes.empty()) parts.log->warn("changed since step {}: {}", state.step, changes);
  SetAsidePassedOver(parts, checkpoint);
}

// The values with the statistics `mean` in place of `own`.
std::vector<HostTensor> ModelWith(std::span<const float> mean, std::span<const float> own,
                                  const SnapshotParts& parts) {
  ImportStatistics(parts.network, mean, parts.stream);
  std::vector<HostTensor> model = ExportPart(parts.network, kValue, "", parts.stream);
  ImportStatistics(parts.network, own, parts.stream);
  return model;
}

// The one that differs from --classes gets a message of its own: it is the common mistake.
void RefuseOtherClasses(const SafetensorsFile& file, const TrainConfig& config) {
  const TensorEntry* fc = file.Find("fc.weight");
  if (fc == nullptr || fc->shape.rank() != 2 || fc->shape[0] == config.classes) return;
  throw Error(EX_DATAERR, file.path() + ": fc.weight has " + std::to_string(fc->shape[0]) +
                              " classes, this run has " + std::to_string(config.classes) +
                              ": give --classes=" + std::to_string(fc->shape[0]));
}

}  // namespace

void SaveSnapshot(const SnapshotParts& parts, std::int64_t step, const LossScale& loss_scale,
                  std::int64_t samples) {
  const std::vector<float> own = ExportStatistics(parts.network, parts.stream);
  const int ranks = parts.communicator.size();
  std::vector<float> rows = GatherRows(own, parts.communicator);
  if (IsRoot(parts)) {
    const std::vector<HostTensor> model = ModelWith(MeanOfRows(rows, ranks), own, parts);
    std::vector<HostTensor> optimizer = ExportPart(parts.network, kMomentum, "", parts.stream);
    if (ranks > 1) {
      const Shape shape{ranks, static_cast<std::int64_t>(own.size())};
      optimizer.push_back({kRankStatistics, shape, std::move(rows)});
    }
    RefuseNotFinite(model);
    RefuseNotFinite(optimizer);
    const std::filesystem::path directory =
        WriteCheckpoint(parts.config.model_dir, StateOf(parts, step, loss_scale, samples),
                        {SourcesOf(model), SourcesOf(optimizer)});
    PruneCheckpoints(parts.config.model_dir, directory, parts.config.keep_checkpoints, Warn(parts));
    parts.log->info("checkpoint of step {} written: {}", step, directory.string());
  }
  // No rank goes on, or ends well, before the checkpoint is durable.
  parts.communicator.Barrier();
}

void ExportModel(const SnapshotParts& parts, const std::filesystem::path& path) {
  const std::vector<float> own = ExportStatistics(parts.network, parts.stream);
  const std::vector<float> mean = MeanOverRanks(own, parts.communicator);
  if (IsRoot(parts)) {
    const std::vector<HostTensor> model = ModelWith(mean, own, parts);
    RefuseNotFinite(model);
    WriteTensorFile(path, model, {{"architecture", parts.config.architecture}},
                    "another --export_dir");
    parts.log->info("weights written: {}", path.string());
  }
  parts.communicator.Barrier();
}

std::optional<std::int64_t> RestoreSnapshot(const SnapshotParts& parts, LossScale& loss_scale,
                                            std::optional<std::int64_t> last_step) {
  struct Header {
    std::int64_t found = 0;
    std::int64_t step = 0;
    std::int64_t world_size = 0;
    std::int64_t good_steps = 0;
    double loss_scale = 0;  // 0: not to be taken over
  } header;
  std::vector<float> rows;
  if (IsRoot(parts)) {
    if (const auto checkpoint = ReadNewestCheckpoint(parts.config.model_dir, Warn(parts))) {
      RefuseOtherNetworks(parts, *checkpoint);
      if (last_step) RefuseOtherRuns(parts, *checkpoint, *last_step);
      rows = Load(parts, *checkpoint);
      const CheckpointState& state = checkpoint->manifest.state;
      header = {1, state.step, state.world_size, state.loss_scale_good_steps,
                TakesLossScale(parts, state) ? state.loss_scale : 0};
      if (last_step) {
        GoOn(parts, *checkpoint);
      } else {
        parts.log->info("weights of step {}: {}", state.step, checkpoint->directory.string());
      }
    }
  }
  parts.communicator.Broadcast(&header, sizeof header, 0);
  if (header.found == 0) return std::nullopt;

  BroadcastPart(parts.network, kValue, parts.communicator, parts.stream);
  BroadcastPart(parts.network, kMomentum, parts.communicator, parts.stream);
  const int ranks = parts.communicator.size();
  if (ranks > 1 && header.world_size == ranks) {
    const auto count = static_cast<std::size_t>(StatisticCount(parts.network));
    rows.resize(count * static_cast<std::size_t>(ranks));
    parts.communicator.Broadcast(rows.data(), rows.size() * sizeof(float), 0);
    const auto rank = static_cast<std::size_t>(parts.communicator.rank());
    ImportStatistics(parts.network, std::span(rows).subspan(rank * count, count), parts.stream);
  }
  if (header.loss_scale > 0) loss_scale.Restore(header.loss_scale, header.good_steps);
  return header.step;
}

void RefuseUsedFolder(const SnapshotParts& parts) {
  if (!IsRoot(parts)) return;
  const std::vector<CheckpointPath> found = ListCheckpoints(parts.config.model_dir);
  if (found.empty()) return;
  const std::string folder = found.front().directory.parent_path().string();
  throw Error(EX_CONFIG,
              folder + " holds " +
                  support::Counted(static_cast<std::int64_t>(found.size()), "checkpoint") +
                  " up to step " + std::to_string(found.front().step) +
                  " of another run, and --resume=never would mix two runs there: give "
                  "another --model_dir, leave --resume=never out to go on from it, or "
                  "move it away: mv " +
                  folder + " " + folder + ".old");
}

void InitializeFromFile(const SnapshotParts& parts) {
  if (IsRoot(parts)) {
    const SafetensorsFile file = SafetensorsFile::Read(parts.config.init_from.string());
    RefuseOtherClasses(file, parts.config);
    CheckTensors(file, ExpectedTensors(parts.network, kValue));
    ImportPart(parts.network, kValue, file, parts.stream);
    parts.log->info("initial weights: {}", file.path());
  }
  BroadcastPart(parts.network, kValue, parts.communicator, parts.stream);
}

}  // namespace trainer
