// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/counted.h"
#include "trainer/checkpoint/names.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"
#include "trainer/train/state/averages_in_place.h"
#include "trainer/train/state/changes.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/state/rank_statistics.h"
#include "trainer/train/state/state_dump.h"

namespace trainer {
namespace {

constexpr auto kValue = Network::Part::kValue;
constexpr auto kMomentum = Network::Part::kMomentum;
constexpr auto kAverage = Network::Part::kAverage;

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

// As --optimizer has it.
std::string NameOf(OptimizerKind optimizer) {
  return optimizer == OptimizerKind::kLars ? "lars" : "sgd";
}

std::function<void(const std::string&)> Warn(const SnapshotParts& parts) {
  return [&parts](const std::string& line) { parts.log->warn("{}", line); };
}

bool IsRoot(const SnapshotParts& parts) { return parts.communicator.rank() == 0; }

std::int64_t StatisticCount(const Network& network) {
  std::int64_t count = 0;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) count += parameter.spec.shape.elements();
  }
  return count;
}

CheckpointState StateOf(const SnapshotParts& parts, const Position& position,
                        const LossScale& loss_scale, std::int64_t samples) {
  CheckpointState state;
  state.step = position.step;
  state.epoch = position.sample / samples;
  state.epoch_samples = position.sample % samples;
  state.skipped_images = position.skipped;
  state.world_size = parts.communicator.size();
  state.global_batch = GlobalBatchOf(parts.config, parts.communicator.size()).images();
  state.seed = parts.config.seed;
  state.architecture = parts.config.arch;
  state.classes = parts.config.classes;
  state.loss_scale = loss_scale.scale();
  state.loss_scale_good_steps = loss_scale.good_steps();
  state.program_version = parts.config.program_version;
  state.precision = PrecisionOf(parts.compute_type);
  state.optimizer = NameOf(parts.config.optimizer);
  state.settings = parts.config.settings;
  return state;
}

Position PositionOf(const CheckpointState& state, std::int64_t samples) {
  return {state.step, state.epoch * samples + std::min(state.epoch_samples, samples),
          state.skipped_images};
}

void RefuseOtherNetworks(const SnapshotParts& parts, const Checkpoint& checkpoint) {
  const CheckpointState& state = checkpoint.manifest.state;
  const TrainConfig& config = parts.config;
  if (state.architecture != config.arch || state.classes != config.classes) {
    throw Error(EX_DATAERR, checkpoint.directory.string() + " is of " + state.architecture +
                                " with " + std::to_string(state.classes) +
                                " classes, this run is " + config.arch + " with " +
                                std::to_string(config.classes) +
                                ": give another --model_dir, or --arch=" + state.architecture +
                                " --classes=" + std::to_string(state.classes));
  }
}

// That of LARS has the learning rate in it, that of SGD has not.
void RefuseMomentumOfOthers(const SnapshotParts& parts, const Checkpoint& checkpoint) {
  const std::string& then = checkpoint.manifest.state.optimizer;
  const std::string now = NameOf(parts.config.optimizer);
  if (then == now) return;
  const std::string directory = checkpoint.directory.string();
  throw Error(EX_CONFIG, directory + " is of a training with --optimizer=" + then +
                             ", whose momentum means nothing to --optimizer=" + now +
                             ": go on with --optimizer=" + then +
                             ", or start anew from its weights, with another --model_dir and "
                             "--init_from=" +
                             directory + "/model.safetensors");
}

// Whether a training has nothing to do with a checkpoint after its end.  Epochs that were trained
// with another global batch may end a few images later than those of this one.
bool IsPastEnd(const CheckpointState& state, const Position& position, const TrainingAhead& ahead) {
  const Schedule& schedule = ahead.schedule;
  if (position.step <= schedule.From(position).total_steps) return false;
  const bool ended_otherwise = schedule.iter_unit == IterationUnit::kEpoch &&
                               state.global_batch != schedule.global_batch &&
                               position.sample <= schedule.epochs * ahead.samples;
  return !ended_otherwise;
}

void RefuseEndedRuns(const Checkpoint& checkpoint, const Position& position,
                     const TrainingAhead& ahead) {
  if (!IsPastEnd(checkpoint.manifest.state, position, ahead)) return;
  throw Error(EX_CONFIG, checkpoint.directory.string() +
                             " is after the end of this run, which is step " +
                             std::to_string(ahead.schedule.From(position).total_steps) +
                             ": give a larger --num_iter, or another --model_dir; "
                             "--mode=evaluate takes its weights as they are");
}

// Those that were passed over for `checkpoint` would be in the way when their steps come again.
void SetAsidePassedOver(const SnapshotParts& parts, const Checkpoint& checkpoint) {
  for (const std::filesystem::path& directory : checkpoint.passed_over) {
    if (const auto name = SetAside(directory)) parts.log->warn("it is now {}", name->string());
  }
}

// Rank 0: loads `checkpoint`, the averages as the values unless `is_training`.  Returns the rows of
// statistics, empty in a run of one rank.
StatisticRows Load(const SnapshotParts& parts, const Checkpoint& checkpoint, bool is_training) {
  Network& network = parts.network;
  const int world_size = checkpoint.manifest.state.world_size;
  constexpr std::string_view kAdvice = "give another --model_dir";
  CheckTensors(checkpoint.model, ExpectedTensors(network, kValue), kAdvice);
  std::vector<ExpectedTensor> optimizer = ExpectedTensors(network, kMomentum);
  const bool has_averages = checkpoint.average.has_value();
  if (world_size > 1) {
    const Shape rows{world_size, StatisticCount(network)};
    optimizer.push_back({kRankStatistics, DType::kFloat32, rows, false});
    if (has_averages) optimizer.push_back({kAverageRankStatistics, DType::kFloat32, rows, false});
  }
  CheckTensors(checkpoint.optimizer, optimizer, kAdvice);
  if (has_averages) {
    CheckTensors(*checkpoint.average, ExpectedTensors(network, kValue), kAdvice);
  }

  const bool is_of_averages = has_averages && !is_training;
  ImportPart(network, kValue, is_of_averages ? *checkpoint.average : checkpoint.model,
             parts.stream);
  ImportPart(network, kMomentum, checkpoint.optimizer, parts.stream);
  if (has_averages && network.keeps_averages()) {
    ImportPart(network, kAverage, *checkpoint.average, parts.stream);
  }
  if (world_size == 1) return {};
  const auto read = [&checkpoint](const char* name) {
    return ReadValues(checkpoint.optimizer, *checkpoint.optimizer.Find(name));
  };
  StatisticRows rows;
  rows.values = read(is_of_averages ? kAverageRankStatistics : kRankStatistics);
  if (has_averages) rows.averages = read(kAverageRankStatistics);
  return rows;
}

// Collective: of the rows of rank 0 each rank takes its own.
void TakeOwnRow(const SnapshotParts& parts, Network::Part part, std::vector<float>& rows) {
  const auto count = static_cast<std::size_t>(StatisticCount(parts.network));
  rows.resize(count * static_cast<std::size_t>(parts.communicator.size()));
  parts.communicator.Broadcast(rows.data(), rows.size() * sizeof(float), 0);
  const auto rank = static_cast<std::size_t>(parts.communicator.rank());
  ImportStatistics(parts.network, std::span(rows).subspan(rank * count, count), parts.stream, part);
}

// Whether the loss scale of `state` means something to this run: that of an fp32 run is 1, at which
// fp16 gradients vanish and nothing is left to halve.
bool TakesLossScale(const SnapshotParts& parts, const CheckpointState& state) {
  if (state.precision.empty()) return state.loss_scale > 1;
  return state.precision == PrecisionOf(parts.compute_type);
}

// Rank 0: a training goes on from `checkpoint`, which has been loaded.
void GoOn(const SnapshotParts& parts, const Checkpoint& checkpoint, const Position& position,
          const LossScale& loss_scale, std::int64_t samples) {
  const CheckpointState now = StateOf(parts, position, loss_scale, samples);
  parts.log->info("going on from step {}, after {} of the {} images of epoch {}: {}", now.step,
                  now.epoch_samples, samples, now.epoch + 1, checkpoint.directory.string());
  for (const std::string& change : ChangesSince(checkpoint.manifest.state, now)) {
    parts.log->warn("changed since step {}: {}", now.step, change);
  }
  if (parts.network.keeps_averages() && !checkpoint.average) {
    parts.log->warn(
        "--ema: the checkpoint has no averages of the weights; they start from its "
        "weights");
  } else if (!parts.network.keeps_averages() && checkpoint.average) {
    parts.log->warn(
        "the averages of the weights in the checkpoint are dropped, for --ema is not "
        "given: evaluations and checkpoints are of the weights alone from here on");
  }
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

}  // namespace

void CopySnapshot(const SnapshotParts& parts, const Position& position, const LossScale& loss_scale,
                  std::int64_t samples, SnapshotCopy* copy, std::optional<double> top1) {
  StatisticRows rows;
  rows.values = GatherRows(ExportStatistics(parts.network, parts.stream), parts.communicator);
  if (parts.network.keeps_averages()) {
    rows.averages =
        GatherRows(ExportStatistics(parts.network, parts.stream, kAverage), parts.communicator);
  }
  if (!IsRoot(parts)) return;
  CheckpointState state = StateOf(parts, position, loss_scale, samples);
  state.top1 = top1;
  copy->Take(parts.network, std::move(state), std::move(rows), parts.stream);
}

WrittenSnapshot WriteSnapshot(const SnapshotCopy& copy, const TrainConfig& config,
                              const WriteHook& hook) {
  RefuseNotFinite(copy.model());
  RefuseNotFinite(copy.optimizer());
  RefuseNotFinite(copy.average());
  WrittenSnapshot written;
  written.directory = WriteCheckpoint(ModelFolder(config), copy.state(),
                                      {copy.model(), copy.optimizer(), copy.average()}, hook);
  const Retention retention = {config.keep_checkpoints, config.checkpoint_every, config.keep_every};
  PruneCheckpoints(ModelFolder(config), written.directory, retention,
                   [&](const std::string& line) { written.warnings.push_back(line); });
  return written;
}

void ExportModel(const SnapshotParts& parts, const std::filesystem::path& path) {
  UseAverages(parts.network, parts.stream, [&] {
    const std::vector<float> own = ExportStatistics(parts.network, parts.stream);
    const std::vector<float> mean = MeanOverRanks(own, parts.communicator);
    if (!IsRoot(parts)) return;
    const std::vector<HostTensor> model = ModelWith(mean, own, parts);
    RefuseNotFinite(SourcesOf(model));
    WriteTensorFile(path, model, {{"architecture", parts.config.arch}}, "another --export_dir");
    parts.log->info("{} written: {}",
                    parts.network.keeps_averages() ? "averages of the weights" : "weights",
                    path.string());
  });
  parts.communicator.Barrier();
}

std::optional<Position> RestoreSnapshot(const SnapshotParts& parts, LossScale& loss_scale,
                                        const std::optional<TrainingAhead>& ahead) {
  struct Header {
    std::int64_t found = 0;
    Position position;
    std::int64_t world_size = 0;
    std::int64_t good_steps = 0;
    double loss_scale = 0;  // 0: not to be taken over
    std::int64_t has_averages = 0;
  } header;
  StatisticRows rows;
  if (IsRoot(parts)) {
    if (const auto checkpoint = ReadNewestCheckpoint(ModelFolder(parts.config), Warn(parts))) {
      const CheckpointState& state = checkpoint->manifest.state;
      RefuseOtherNetworks(parts, *checkpoint);
      header = {1,
                ahead ? PositionOf(state, ahead->samples) : Position{.step = state.step},
                state.world_size,
                state.loss_scale_good_steps,
                TakesLossScale(parts, state) ? state.loss_scale : 0,
                checkpoint->average ? 1 : 0};
      if (ahead) RefuseMomentumOfOthers(parts, *checkpoint);
      if (ahead) RefuseEndedRuns(*checkpoint, header.position, *ahead);
      rows = Load(parts, *checkpoint, ahead.has_value());
      if (ahead) {
        GoOn(parts, *checkpoint, header.position, loss_scale, ahead->samples);
      } else {
        parts.log->info("{} of step {}: {}",
                        checkpoint->average ? "averages of the weights" : "weights", state.step,
                        checkpoint->directory.string());
      }
    }
  }
  parts.communicator.Broadcast(&header, sizeof header, 0);
  if (header.found == 0) return std::nullopt;

  BroadcastPart(parts.network, kValue, parts.communicator, parts.stream);
  BroadcastPart(parts.network, kMomentum, parts.communicator, parts.stream);
  const int ranks = parts.communicator.size();
  const bool has_rows = ranks > 1 && header.world_size == ranks;
  if (has_rows) TakeOwnRow(parts, kValue, rows.values);
  if (parts.network.keeps_averages()) {
    if (header.has_averages != 0) {
      BroadcastPart(parts.network, kAverage, parts.communicator, parts.stream);
      if (has_rows) TakeOwnRow(parts, kAverage, rows.averages);
    } else {
      parts.network.StartAverages(parts.stream);
    }
  }
  if (header.loss_scale > 0) loss_scale.Restore(header.loss_scale, header.good_steps);
  return header.position;
}

void RefuseUsedFolder(const SnapshotParts& parts) {
  if (!IsRoot(parts)) return;
  const std::vector<CheckpointPath> found = ListCheckpoints(ModelFolder(parts.config));
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

}  // namespace trainer
