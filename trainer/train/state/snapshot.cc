// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/number.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"
#include "trainer/train/state/network_state.h"

namespace trainer {
namespace {

std::size_t ValueCount(const Parameter& parameter) {
  return static_cast<std::size_t>(parameter.spec.shape.elements());
}

float* FloatsIn(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

}  // namespace

SnapshotCopy::SnapshotCopy(Backend& backend, const Network& network) {
  std::size_t values = 0;
  std::size_t momentum = 0;
  for (const Parameter& parameter : network.parameters()) {
    values += ValueCount(parameter);
    if (!parameter.spec.statistic) momentum += ValueCount(parameter);
  }
  values_ = backend.AllocateHost(values * sizeof(float));
  momentum_ = backend.AllocateHost(momentum * sizeof(float));
  ema_ = backend.AllocateHost(network.has_ema() ? values_.bytes() : 0);
  // The system gives pages when they are first written to, which may take far longer than the copy.
  for (const Buffer* buffer : {&values_, &momentum_, &ema_}) {
    std::fill_n(buffer->data(), buffer->bytes(), std::byte{0});
  }
  std::size_t ema = values = momentum = 0;
  for (const Parameter& parameter : network.parameters()) {
    const auto add = [&](std::vector<TensorReader>& tensors, const Buffer& buffer,
                         std::size_t& begin) {
      tensors.push_back(
          {parameter.name, DType::kFloat32, parameter.spec.shape, FloatsIn(buffer) + begin});
      begin += ValueCount(parameter);
    };
    add(model_, values_, values);
    if (!parameter.spec.statistic) add(optimizer_, momentum_, momentum);
    if (network.has_ema()) add(average_, ema_, ema);
  }
  momentum_tensors_ = optimizer_.size();
}

void SnapshotCopy::Take(const Network& network, CheckpointState state, StatisticRows rows,
                        Stream& stream) {
  state_ = std::move(state);
  rows_ = std::move(rows);
  TakeValues(network, Network::Part::kValue, rows_.values, FloatsIn(values_), stream);
  if (!average_.empty()) {
    TakeValues(network, Network::Part::kAverage, rows_.ema, FloatsIn(ema_), stream);
  }
  float* momentum = FloatsIn(momentum_);
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) continue;
    network.Export(Network::Part::kMomentum, parameter, momentum, stream);
    momentum += ValueCount(parameter);
  }
  optimizer_.resize(momentum_tensors_);
  if (state_.world_size == 1) return;
  const auto add = [this](const char* name, const std::vector<float>& of_ranks) {
    const auto count = static_cast<std::int64_t>(of_ranks.size()) / state_.world_size;
    optimizer_.push_back({name, DType::kFloat32, Shape{state_.world_size, count}, of_ranks.data()});
  };
  add(kRankStatistics, rows_.values);
  if (!average_.empty()) add(kAverageRankStatistics, rows_.ema);
}

void SnapshotCopy::TakeValues(const Network& network, Network::Part part,
                              const std::vector<float>& rows, float* dst, Stream& stream) const {
  const std::vector<float> mean = MeanOfRows(rows, state_.world_size);
  const float* statistic = mean.data();
  for (const Parameter& parameter : network.parameters()) {
    const std::size_t count = ValueCount(parameter);
    if (parameter.spec.statistic) {
      std::copy_n(statistic, count, dst);
      statistic += count;
    } else {
      network.Export(part, parameter, dst, stream);
    }
    dst += count;
  }
  DDL_CHECK(statistic == mean.data() + mean.size());
}

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

std::function<void(const std::string&)> Warn(const SnapshotDeps& deps) {
  return [&deps](const std::string& line) { deps.log->warn("{}", line); };
}

bool IsRoot(const SnapshotDeps& deps) { return deps.communicator.rank() == 0; }

std::int64_t StatisticCount(const Network& network) {
  std::int64_t count = 0;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) count += parameter.spec.shape.elements();
  }
  return count;
}

const DataIdentity& DataOf(const SnapshotDeps& deps) {
  return deps.data != nullptr ? *deps.data : deps.config.data;
}

CheckpointState StateOf(const SnapshotDeps& deps, const Position& position,
                        const LossScale& loss_scale, std::int64_t samples) {
  CheckpointState state;
  state.step = position.step;
  state.epoch = position.sample / samples;
  state.epoch_samples = position.sample % samples;
  state.skipped_images = position.skipped;
  state.world_size = deps.communicator.size();
  state.global_batch = GlobalBatchOf(deps.config, deps.communicator.size()).images();
  state.seed = deps.config.seed;
  state.architecture = deps.config.arch;
  state.classes = deps.config.classes;
  state.loss_scale = loss_scale.scale();
  state.loss_scale_good_steps = loss_scale.good_steps();
  state.program_version = deps.config.program_version;
  state.precision = PrecisionOf(deps.compute_type);
  state.optimizer = TraitsOf(deps.config.optimizer).name;
  state.settings = deps.config.settings;
  state.data = DataOf(deps);
  return state;
}

Position PositionOf(const CheckpointState& state, std::int64_t samples) {
  constexpr std::int64_t kMaxSample = std::int64_t{1} << 62;
  std::int64_t sample = 0;
  if (__builtin_mul_overflow(state.epoch, samples, &sample) || sample > kMaxSample) {
    throw Error(EX_DATAERR, "the checkpoint of step " + std::to_string(state.step) +
                                " is damaged: no run has " + std::to_string(state.epoch) +
                                " epochs of " + std::to_string(samples) + " images");
  }
  return {state.step, sample + std::min(state.epoch_samples, samples), state.skipped_images};
}

void RejectOtherNetworks(const SnapshotDeps& deps, const Checkpoint& checkpoint) {
  const CheckpointState& state = checkpoint.manifest.state;
  const TrainConfig& config = deps.config;
  if (state.architecture != config.arch || state.classes != config.classes) {
    throw Error(EX_DATAERR, checkpoint.directory.string() + " is of " + state.architecture +
                                " with " + std::to_string(state.classes) +
                                " classes, this run is " + config.arch + " with " +
                                std::to_string(config.classes) +
                                ": give another --model_dir, or --arch=" + state.architecture +
                                " --classes=" + std::to_string(state.classes));
  }
}

// That of one optimizer means something else to another: backend/ops.h has the formulas.
void RejectMomentumOfOthers(const SnapshotDeps& deps, const Checkpoint& checkpoint) {
  const std::string& then = checkpoint.manifest.state.optimizer;
  const std::string now = TraitsOf(deps.config.optimizer).name;
  if (then == now) return;
  const std::string directory = checkpoint.directory.string();
  throw Error(EX_CONFIG, directory + " is of a training with --optimizer=" + then +
                             ", whose momentum means nothing to --optimizer=" + now +
                             ": continue with --optimizer=" + then +
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

void RejectEndedRuns(const Checkpoint& checkpoint, const Position& position,
                     const TrainingAhead& ahead) {
  if (!IsPastEnd(checkpoint.manifest.state, position, ahead)) return;
  throw Error(EX_CONFIG, checkpoint.directory.string() +
                             " is after the end of this run, which is step " +
                             std::to_string(ahead.schedule.From(position).total_steps) +
                             ": give a larger --num_iter, or another --model_dir; "
                             "--mode=evaluate takes its weights as they are");
}

// Those that were passed over for `checkpoint` would be in the way when their steps come again, and
// for the one that was chosen they would be the newest.
void SetAsidePassedOver(const SnapshotDeps& deps, const Checkpoint& checkpoint, bool is_chosen) {
  for (const std::filesystem::path& directory : checkpoint.passed_over) {
    if (const auto name = SetAside(directory)) {
      deps.log->warn("{} is set aside: it is now {}", directory.filename().string(),
                     name->string());
    } else if (std::error_code error; is_chosen && std::filesystem::exists(directory, error)) {
      throw Error(EX_OSERR, directory.string() + " is newer than " + checkpoint.directory.string() +
                                ", from which the run resumes, and cannot be set aside: move it "
                                "away");
    }
  }
}

// Rank 0: loads `checkpoint`, the averages as the values unless `is_training`.  Returns the rows of
// statistics, empty in a run of one rank.
StatisticRows Load(const SnapshotDeps& deps, const Checkpoint& checkpoint, bool is_training) {
  Network& network = deps.network;
  const int world_size = checkpoint.manifest.state.world_size;
  constexpr std::string_view kAdvice = "give another --model_dir";
  CheckTensors(checkpoint.model, ExpectedTensors(network, kValue), kAdvice);
  std::vector<ExpectedTensor> optimizer = ExpectedTensors(network, kMomentum);
  const bool holds_ema = checkpoint.average.has_value();
  if (world_size > 1) {
    const Shape rows{world_size, StatisticCount(network)};
    optimizer.push_back({kRankStatistics, DType::kFloat32, rows, false});
    if (holds_ema) optimizer.push_back({kAverageRankStatistics, DType::kFloat32, rows, false});
  }
  CheckTensors(checkpoint.optimizer, optimizer, kAdvice);
  if (holds_ema) {
    CheckTensors(*checkpoint.average, ExpectedTensors(network, kValue), kAdvice);
  }

  const bool is_of_ema = holds_ema && !is_training;
  ImportPart(network, kValue, is_of_ema ? *checkpoint.average : checkpoint.model, deps.stream);
  ImportPart(network, kMomentum, checkpoint.optimizer, deps.stream);
  if (holds_ema && network.has_ema()) {
    ImportPart(network, kAverage, *checkpoint.average, deps.stream);
  }
  if (world_size == 1) return {};
  const auto read = [&checkpoint](const char* name) {
    return ReadValues(checkpoint.optimizer, *checkpoint.optimizer.Find(name));
  };
  StatisticRows rows;
  rows.values = read(is_of_ema ? kAverageRankStatistics : kRankStatistics);
  if (holds_ema) rows.ema = read(kAverageRankStatistics);
  return rows;
}

// Collective: of the rows of rank 0 each rank takes its own.
void TakeOwnRow(const SnapshotDeps& deps, Network::Part part, std::vector<float>& rows) {
  const auto count = static_cast<std::size_t>(StatisticCount(deps.network));
  rows.resize(count * static_cast<std::size_t>(deps.communicator.size()));
  deps.communicator.Broadcast(rows.data(), rows.size() * sizeof(float), 0);
  const auto rank = static_cast<std::size_t>(deps.communicator.rank());
  ImportStatistics(deps.network, std::span(rows).subspan(rank * count, count), deps.stream, part);
}

// Whether the loss scale of `state` means something to this run: that of an fp32 run is 1, at which
// fp16 gradients vanish and nothing is left to halve.
bool TakesLossScale(const SnapshotDeps& deps, const CheckpointState& state) {
  if (state.precision.empty()) return state.loss_scale > 1;
  return state.precision == PrecisionOf(deps.compute_type);
}

// Rank 0: a training goes on from `checkpoint`, which has been loaded.
void LogResume(const SnapshotDeps& deps, const Checkpoint& checkpoint, const Position& position,
               const LossScale& loss_scale, std::int64_t samples) {
  const CheckpointState now = StateOf(deps, position, loss_scale, samples);
  deps.log->info("resumed from step {}, after {} of the {} images of epoch {}: {}", now.step,
                 now.epoch_samples, samples, now.epoch + 1, checkpoint.directory.string());
  for (const std::string& change : ChangesSince(checkpoint.manifest.state, now)) {
    deps.log->warn("changed since step {}: {}", now.step, change);
  }
  if (deps.network.has_ema() && !checkpoint.average) {
    deps.log->warn(
        "--ema: the checkpoint has no EMA weights; they start from its "
        "weights");
  } else if (!deps.network.has_ema() && checkpoint.average) {
    deps.log->warn(
        "the EMA weights in the checkpoint are dropped, for --ema is not "
        "given: evaluations and checkpoints are of the weights alone from here on");
  }
}

// The values with the statistics `mean` instead of `own`.
std::vector<HostTensor> ModelWith(std::span<const float> mean, std::span<const float> own,
                                  const SnapshotDeps& deps) {
  ImportStatistics(deps.network, mean, deps.stream);
  std::vector<HostTensor> model = ExportPart(deps.network, kValue, "", deps.stream);
  ImportStatistics(deps.network, own, deps.stream);
  return model;
}

}  // namespace

void CopySnapshot(const SnapshotDeps& deps, const Position& position, const LossScale& loss_scale,
                  std::int64_t samples, SnapshotCopy* copy, std::optional<double> top1) {
  StatisticRows rows;
  rows.values = GatherRows(ExportStatistics(deps.network, deps.stream), deps.communicator);
  if (deps.network.has_ema()) {
    rows.ema = GatherRows(ExportStatistics(deps.network, deps.stream, kAverage), deps.communicator);
  }
  if (!IsRoot(deps)) return;
  CheckpointState state = StateOf(deps, position, loss_scale, samples);
  state.top1 = top1;
  copy->Take(deps.network, std::move(state), std::move(rows), deps.stream);
}

WrittenSnapshot WriteSnapshot(const SnapshotCopy& copy, const TrainConfig& config,
                              const WriteHook& hook) {
  RejectNotFinite(copy.model());
  RejectNotFinite(copy.optimizer());
  RejectNotFinite(copy.average());
  WrittenSnapshot written;
  written.directory = WriteCheckpoint(ModelDirectory(config), copy.state(),
                                      {copy.model(), copy.optimizer(), copy.average()}, hook);
  const Retention retention = {config.keep_checkpoints, config.checkpoint_every, config.keep_every};
  PruneCheckpoints(ModelDirectory(config), written.directory, retention,
                   [&](const std::string& line) { written.warnings.push_back(line); });
  return written;
}

void ExportModel(const SnapshotDeps& deps, const std::filesystem::path& path) {
  SwapInEma(deps.network, deps.stream, [&] {
    const std::vector<float> own = ExportStatistics(deps.network, deps.stream);
    const std::vector<float> mean = MeanOverRanks(own, deps.communicator);
    if (!IsRoot(deps)) return;
    const std::vector<HostTensor> model = ModelWith(mean, own, deps);
    RejectNotFinite(SourcesOf(model));
    WriteTensorFile(path, model, MetadataOfWeights(deps.config.arch, DataOf(deps)),
                    "another --export_dir");
    deps.log->info("{} written: {}", deps.network.has_ema() ? "EMA weights" : "weights",
                   path.string());
  });
  deps.communicator.Barrier();
}

void TakeDataOfWeights(const SnapshotDeps& deps, const DataIdentity& data, const std::string& where,
                       const std::string& advice) {
  const TrainConfig& config = deps.config;
  const bool is_training = KeepsWeights(config.mode);
  // Predictions may be given names that people like better.
  const bool may_rename = config.mode == RunMode::kPredict && config.has_own_labels;
  const std::string other = DescribeOtherClasses({config.data.class_names, config.labels_file},
                                                 {data.class_names, where}, may_rename);
  if (!other.empty() && !config.ignore_mismatched_classes) {
    throw Error(EX_DATAERR,
                other +
                    ": the labels do not stand for the classes of these weights; convert the "
                    "images with the training's classes (ddldata convert --class_list), " +
                    advice + "or give --ignore_mismatched_classes to use them all the same");
  }
  if (!other.empty()) {
    deps.log->warn("{}: it is used all the same (--ignore_mismatched_classes)", other);
  }
  if (deps.data == nullptr) return;
  if (!is_training) {
    deps.data->class_names = data.class_names;
    deps.data->training = data.training;
  } else if (deps.data->class_names.empty()) {
    deps.data->class_names = data.class_names;
  }
}

namespace {

// The end of a sentence about weights that are used for images of `size` pixels.
std::string DescribeOtherSize(const CheckpointState& state, int size) {
  for (const auto& [option, value] : state.settings) {
    if (option != "--image_size" || value == std::to_string(size)) continue;
    return fmt::format(", of a training with --image_size={} (now {})", value, size);
  }
  return "";
}

}  // namespace

std::optional<Position> RestoreSnapshot(const SnapshotDeps& deps, LossScale& loss_scale,
                                        const std::optional<TrainingAhead>& ahead) {
  struct Header {
    std::int64_t found = 0;
    Position position;
    std::int64_t world_size = 0;
    std::int64_t good_steps = 0;
    double loss_scale = 0;  // 0: not to be taken over
    std::int64_t holds_ema = 0;
  } header;
  StatisticRows rows;
  if (IsRoot(deps)) {
    const bool is_chosen = ahead && !ahead->is_rollback && deps.config.resume_from >= 0;
    const std::filesystem::path model_dir = ModelDirectory(deps.config);
    if (const auto checkpoint = is_chosen ? ReadCheckpointOfStep(model_dir, deps.config.resume_from)
                                          : ReadNewestCheckpoint(model_dir, Warn(deps))) {
      const CheckpointState& state = checkpoint->manifest.state;
      RejectOtherNetworks(deps, *checkpoint);
      header = {1,
                ahead ? PositionOf(state, ahead->samples) : Position{.step = state.step},
                state.world_size,
                state.loss_scale_good_steps,
                TakesLossScale(deps, state) ? state.loss_scale : 0,
                checkpoint->average ? 1 : 0};
      if (ahead) RejectMomentumOfOthers(deps, *checkpoint);
      if (ahead) RejectEndedRuns(*checkpoint, header.position, *ahead);
      if (!ahead || !ahead->is_rollback) {
        TakeDataOfWeights(deps, state.data, checkpoint->directory.string(), "");
      }
      rows = Load(deps, *checkpoint, ahead.has_value());
      if (ahead && !ahead->is_rollback) {
        LogResume(deps, *checkpoint, header.position, loss_scale, ahead->samples);
      } else if (!ahead) {
        deps.log->info("{} of step {}: {}{}", checkpoint->average ? "EMA weights" : "weights",
                       state.step, checkpoint->directory.string(),
                       DescribeOtherSize(state, deps.config.image_size));
      }
      if (ahead) SetAsidePassedOver(deps, *checkpoint, is_chosen);
    }
  }
  deps.communicator.Broadcast(&header, sizeof header, 0);
  if (header.found == 0) return std::nullopt;

  BroadcastPart(deps.network, kValue, deps.communicator, deps.stream);
  BroadcastPart(deps.network, kMomentum, deps.communicator, deps.stream);
  const int ranks = deps.communicator.size();
  const bool has_rows = ranks > 1 && header.world_size == ranks;
  if (has_rows) TakeOwnRow(deps, kValue, rows.values);
  if (header.holds_ema == 0) {
    deps.network.InitEma(deps.stream);
  } else if (deps.network.has_ema()) {
    BroadcastPart(deps.network, kAverage, deps.communicator, deps.stream);
    if (has_rows) TakeOwnRow(deps, kAverage, rows.ema);
  }
  if (header.loss_scale > 0) loss_scale.Restore(header.loss_scale, header.good_steps);
  return header.position;
}

void RejectUsedDirectory(const SnapshotDeps& deps) {
  if (!IsRoot(deps)) return;
  const std::vector<CheckpointPath> found = ListCheckpoints(ModelDirectory(deps.config));
  if (found.empty()) return;
  const std::string directory = found.front().directory.parent_path().string();
  throw Error(EX_CONFIG,
              directory + " holds " +
                  support::Counted(static_cast<std::int64_t>(found.size()), "checkpoint") +
                  " up to step " + std::to_string(found.front().step) +
                  " of another run, and --resume=never would mix two runs there: give "
                  "another --model_dir, leave --resume=never out to resume from it, or "
                  "move it away: mv " +
                  directory + " " + directory + ".old");
}

Position Rollbacks::Resume(const Position& checkpoint, std::int64_t behind,
                           const std::string& found) {
  DDL_CHECK(behind > checkpoint.sample);
  if (checkpoint.step > step_) {
    step_ = checkpoint.step;
    in_a_row_ = 0;
  }
  if (++in_a_row_ > kMaxInARow) {
    throw Error(
        EX_SOFTWARE,
        fmt::format(
            "{}, after {} rollbacks to the checkpoint of step {} from which none "
            "newer came: training has diverged; start again from an earlier "
            "checkpoint (--resume_from=STEP), or from the last with a smaller --lr_init or more "
            "--lr_warmup_epochs",
            found, kMaxInARow, step_));
  }
  return {checkpoint.step, behind, checkpoint.skipped + behind - checkpoint.sample};
}

namespace {

// Of another --precision, whatever the option was: a CPU computes in fp32.
std::string OfPrecision(const CheckpointState& now) {
  return now.precision == "fp32" ? "there is no loss scale any more"
                                 : "a loss scale that adapts itself starts afresh";
}

// What comes of another `name`; "" where that is plain.
std::string ConsequenceOf(const std::string& name, const CheckpointState& now) {
  if (name == "--backend") return "it computes the same but for rounding";
  if (name == "--threads") return "sums are added in another order, so they are rounded otherwise";
  const bool is_order = name == "training data" || name == "--seed" || name == "--shuffle";
  if (is_order && now.epoch_samples > 0) {
    return fmt::format(
        "the order is another one, so in epoch {} images may come twice or be left "
        "out",
        now.epoch + 1);
  }
  return "";
}

}  // namespace

std::vector<std::string> ChangesSince(const CheckpointState& then, const CheckpointState& now) {
  std::vector<std::string> changes;
  const auto add = [&](const std::string& name, const auto& before, const auto& after,
                       const std::string& consequence) {
    if (before == after) return;
    changes.push_back(fmt::format("{} {} (now {}){}{}", name, before, after,
                                  consequence.empty() ? "" : "; ", consequence));
  };
  add("ranks", then.world_size, now.world_size,
      "all continue with the mean of the running statistics of batch norm");
  add("images in a step", then.global_batch, now.global_batch,
      "the learning rate is that of the new number, at the same place of the epoch");
  const bool other_precision = !then.precision.empty() && then.precision != now.precision;
  if (other_precision) add("computed in", then.precision, now.precision, OfPrecision(now));
  add("--seed", then.seed, now.seed, ConsequenceOf("--seed", now));
  add("version", then.program_version, now.program_version, "");
  if (IsOtherData(then.data.training, now.data.training)) {
    const std::string consequence = ConsequenceOf("training data", now);
    changes.push_back("training data " + DescribeOtherData(then.data.training, now.data.training) +
                      (consequence.empty() ? "" : "; ") + consequence);
  }
  for (const auto& [name, after] : now.settings) {
    const auto before = then.settings.find(name);
    if (before == then.settings.end() || (name == "--precision" && other_precision)) continue;
    add(name, before->second, after, ConsequenceOf(name, now));
  }
  return changes;
}

}  // namespace trainer
