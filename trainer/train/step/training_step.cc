// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/training_step.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/train/step/step_trace.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Whether to record steps.
bool Records(const TrainingStepDeps& deps) {
  const StepGraph graph = deps.config.graph;
  const int ranks = deps.communicator.size();
  // Where each step is replayed, none is left for a graph.
  if (graph == StepGraph::kOff || deps.config.replay_check == 1) return false;
  const bool can_sum = ranks == 1 || deps.communicator.reduces_device_memory();
  // All ranks record a sum in the same batch, so they must have equally many.
  const bool is_even = deps.config.short_ranks == 0;
  if (deps.backend.can_capture() && can_sum && is_even) return true;
  if (graph == StepGraph::kAuto) return false;
  const std::string problem =
      !deps.backend.can_capture()
          ? fmt::format("the back end {} has no graphs", deps.backend.name())
      : !can_sum ? fmt::format("sums of {} ranks in host memory cannot be part of a graph", ranks)
                 : fmt::format("{} ranks do not divide --global_batch_size={}", ranks,
                               deps.config.global_batch_size);
  throw Error(EX_USAGE, fmt::format("--graph=on: {}; use --graph=auto", problem));
}

}  // namespace

TrainingStep::TrainingStep(const TrainingStepDeps& deps)
    : deps_(deps),
      global_batch_(GlobalBatchOf(deps.config, deps.communicator.size())),
      batches_(global_batch_.batches_of(deps.communicator.rank())),
      mode_(deps.config.freeze_batch_norm ? Mode::kFrozen : Mode::kTraining),
      feed_(deps.backend, deps.device_batch, deps.source, deps.end * batches_,
            {deps.config.mixup, deps.config.seed}),
      overlap_(deps.backend, deps.network, deps.communicator,
               deps.config.reduce_precision == ReducePrecision::k16Bit,
               {batches_, global_batch_.batches()}, deps.config.optimizer, deps.bucket_bytes),
      non_finite_guard_(deps.config.on_nan, deps.communicator.size()),
      rank_seconds_(deps.communicator.rank(), deps.communicator.size()),
      rank_metrics_exchange_(deps.communicator.rank(), deps.communicator.size()),
      watch_(deps.backend.MakeStream()),
      records_(Records(deps)) {
  for (PlaceState& place : places_) {
    for (auto& mark : place.marks) mark = deps.backend.MakeEvent();
    place.end = deps.backend.MakeEvent();
    if (mode_ == Mode::kFrozen) continue;
    place.kept_statistics = deps.backend.AllocateDevice(deps.network.statistics().bytes());
  }
  if (deps.config.replay_check > 0) replay_.emplace(deps.backend, deps.network);
}

TrainingStep::Outcome TrainingStep::Run(std::int64_t step, double learning_rate,
                                        const Requests& requested,
                                        std::optional<double> next_rate) {
  DDL_CHECK(!next_ || (next_->step == step && next_->learning_rate == learning_rate));
  const RangeOfScope range(deps_.backend, "training step");
  const auto start = next_ ? ended_ : Clock::now();
  QueuedBatch batch;  // the last one
  StepExchange own;
  StepTimes times;  // of all batches
  StepTimes of_batch;
  auto end = start;
  for (std::int64_t index = 0; index < batches_; ++index) {
    if (index > 0 && deps_.spans != nullptr) {
      AddBatchSpans(*deps_.spans, step + 1, end, of_batch);
    }
    batch = next_ ? *std::exchange(next_, {})
                  : QueueBatch(step, index, learning_rate, index > 0 ? &batch : nullptr);
    of_batch = FinishBatch(batch, next_rate);
    end = Clock::now();
    own.totals.Add(batch.place->numbers->host().loss_sums);
    for (std::size_t i = 0; i < kStepPhases; ++i) times.phases[i] += of_batch.phases[i];
  }
  ran_ = true;
  ended_ = end;
  times.step = Seconds(end - start);
  const UpdateSums& update_sums = batch.place->numbers->host().update_sums;
  own.requested = requested;
  own.bad_gradients = update_sums.nonfinite != 0 ? 1 : 0;
  own.bad_weights = std::isfinite(update_sums.sum_of_squares) ? 0 : 1;
  own.bad_inputs = batch.input_failure ? 1 : 0;

  Outcome outcome;
  if (!not_captured_.empty()) {
    outcome.warning =
        "training steps cannot run as one graph each, so kernels are started one by one: " +
        std::exchange(not_captured_, {});
  }
  StepResult& record = outcome.record;
  record.step = step;
  record.learning_rate = learning_rate;
  record.loss_scale = deps_.loss_scale.scale();
  record.gradient_norm = gradient_scale_ * std::sqrt(update_sums.gradient_squares);
  record.l2_loss = deps_.config.weight_decay * 0.5 * update_sums.sum_of_squares;
  record.times = times;
  if (deps_.spans != nullptr) AddStepSpans(*deps_.spans, step + 1, start, end, of_batch);

  // As if it had computed as many batches as the others.
  own.rank_seconds =
      rank_seconds_.Say(BusySeconds(record.times) * static_cast<double>(global_batch_.accumulate) /
                        static_cast<double>(batches_));
  own.rank_metrics_exchange =
      rank_metrics_exchange_.Say(record.times[StepPhase::kInputWait],
                                 deps_.device_state ? deps_.device_state() : DeviceState());
  const StepExchange all = Exchange(own, deps_.communicator);
  if (!all.is_sound()) TakeBackNext();
  if (all.bad_inputs > 0) {
    SetBackStatistics(*batch.first);
    ThrowInputFault(batch.input_failure, deps_.communicator);
  }
  record.rank_seconds = rank_seconds_.Received();
  record.rank_metrics_exchange = rank_metrics_exchange_.Received();
  pending_ = pending_ | all.requested;
  record.cross_entropy = all.totals.mean_loss();
  record.top1 = all.totals.top1_fraction();
  const Verdict verdict = non_finite_guard_.Check(record, all, deps_.loss_scale);
  record.skipped = verdict == Verdict::kOverflowed;
  record.left_out = verdict == Verdict::kLeftOut;
  if (record.left_out) SetBackStatistics(*batch.first);
  if (verdict == Verdict::kRollback) {
    outcome.found = non_finite_guard_.found();
  } else if (!next_) {
    outcome.requested = std::exchange(pending_, {});
  }
  return outcome;
}

InputBatch TrainingStep::TakeBatch(std::int64_t number, std::exception_ptr& failure) {
  const auto loss_scale = static_cast<float>(deps_.loss_scale.scale());
  try {
    return feed_.Take(number, loss_scale, deps_.stream);
  } catch (...) {
    // The other ranks are on their way into the all-reduce of this step, which needs all of them.
    failure = std::current_exception();
  }
  return feed_.TakeBlank(deps_.stream);
}

TrainingStep::QueuedBatch TrainingStep::QueueBatch(std::int64_t step, std::int64_t index,
                                                   double learning_rate,
                                                   const QueuedBatch* before) {
  QueuedBatch queued;
  queued.step = step;
  queued.index = index;
  queued.learning_rate = learning_rate;
  const InputBatch batch = TakeBatch(step * batches_ + index, queued.input_failure);
  queued.place = &here();
  queued.first = index > 0 ? before->first : queued.place;
  queued.place->numbers = &deps_.device_batch.numbers();
  UpdateParameters& update = queued.place->numbers->host().update;
  update = UpdateCall(learning_rate);
  const bool is_judged = index > 0 || before == nullptr;
  if (!is_judged) update.before = &before->place->numbers->device()->update_sums;
  if (IsReplayed(step)) {
    RunTwice(batch, PlaceInStep(index), queued);
  } else {
    Queue(batch, PlaceInStep(index));
  }
  queued.place->end->Record(deps_.stream);
  return queued;
}

NextStep TrainingStep::NextOf(std::int64_t step, bool is_looked_at) const {
  return {.has_graphs = records_ && captured_.size() == DeviceBatch::kPlaces,
          .is_looked_at = is_looked_at,
          .batches = global_batch_.accumulate,
          .is_one_replayed = IsReplayed(step) || IsReplayed(step + 1),
          .changes_loss_scale = deps_.loss_scale.IsAboutToGrow(),
          .is_requested = pending_.any()};
}

StepTimes TrainingStep::FinishBatch(const QueuedBatch& batch, std::optional<double> next_rate) {
  Stream& stream = deps_.stream;
  {
    const RangeOfScope fetching(deps_.backend, "next batch");
    feed_.FetchNext(batch.step * batches_ + batch.index, stream);
  }
  if (MayQueueNext(NextOf(batch.step, !next_rate))) {
    next_ = QueueBatch(batch.step + 1, 0, *next_rate, &batch);
  }
  const RangeOfScope waiting(deps_.backend, "wait for the device");
  if (next_) {
    batch.place->end->MakeWait(*watch_);
    deps_.communicator.Synchronize(*watch_);
  } else {
    deps_.communicator.Synchronize(stream);
  }
  return Times(batch);
}

void TrainingStep::TakeBackNext() {
  if (!next_) return;
  deps_.communicator.Synchronize(deps_.stream);
  SetBackStatistics(*next_->place);
  next_.reset();
}

void TrainingStep::RunTwice(const InputBatch& batch, BatchPlace place, const QueuedBatch& queued) {
  Stream& stream = deps_.stream;
  const Network::GradientsReady no_sum = [](std::size_t) {};
  SharedStepScalars& numbers = deps_.device_batch.numbers();
  const auto& marks = here().marks;
  if (place.is_first) KeepStatistics();
  replay_->Begin(stream);
  numbers.ToDevice(stream);
  marks[0]->RecordTime(stream);
  QueueForward(batch);
  marks[1]->RecordTime(stream);
  deps_.network.Backward(stream, no_sum);
  replay_->Keep(stream);
  numbers.ToDevice(stream);  // their sums begin anew
  QueueForward(batch);
  deps_.network.Backward(stream, no_sum);
  const std::optional<ReplayDifference> found = replay_->Compare(stream);
  // Of black images that stand for none nothing is wanted.
  if (found && !difference_ && !queued.input_failure) difference_ = found;
  if (place.is_last) {
    try {
      RequireSamePasses(queued.step, difference_, deps_.replay_rank, deps_.communicator);
    } catch (const RankFault&) {
      SetBackStatistics(*queued.first);
      throw;
    }
  }
  marks[2]->RecordTime(stream);
  overlap_.Take(place, stream);
  if (place.is_last) QueueUpdate();
  numbers.ToHost(stream);
}

void TrainingStep::Announce(spdlog::logger& log) const {
  if (deps_.communicator.rank() != 0) return;
  if (records_) log.info("training steps run as one graph each");
  const double allowed = deps_.backend.repeat_error();
  if (replay_ && allowed > 0) {
    log.info(
        "--replay_check finds differences above {:.2g} of a gradient's norm here, and all of "
        "them with --deterministic",
        allowed);
  }
  if (overlap_.staged_bytes() == 0) return;
  log.warn(
      "in each step {:.1f} MB of gradients go to host memory, are summed there and come back: "
      "'exposed all-reduce' in the summary is how long the GPUs wait for it; NCCL would sum them "
      "on the GPUs",
      static_cast<double>(overlap_.staged_bytes()) * 1e-6);
}

void TrainingStep::KeepStatistics() {
  const Buffer& kept = here().kept_statistics;
  if (kept.bytes() == 0) return;
  deps_.backend.CopyOnDevice(kept.data(), deps_.network.statistics().data(), kept.bytes(),
                             deps_.stream);
}

// What went through batch norm on the way to such a loss may be NaN too.
void TrainingStep::SetBackStatistics(const PlaceState& place) {
  const Buffer& kept = place.kept_statistics;
  if (kept.bytes() == 0) return;
  deps_.backend.CopyOnDevice(deps_.network.statistics().data(), kept.data(), kept.bytes(),
                             deps_.stream);
}

UpdateParameters TrainingStep::UpdateCall(double learning_rate) {
  gradient_scale_ = 1 / (deps_.loss_scale.scale() * static_cast<double>(overlap_.divisor()));
  return {.learning_rate = static_cast<float>(learning_rate),
          .momentum_factor = static_cast<float>(deps_.config.momentum),
          .weight_decay = static_cast<float>(deps_.config.weight_decay),
          .gradient_scale = static_cast<float>(gradient_scale_)};
}

void TrainingStep::Queue(const InputBatch& batch, BatchPlace place) {
  const std::pair key(batch.pixels, place);
  if (records_ && ran_ && !captured_.contains(key)) Capture(batch, place);
  if (records_ && ran_) {
    captured_.at(key)->Queue(deps_.stream);
  } else {
    QueueCalls(batch, place);
  }
}

// NCCL wants a sum to be recorded by all ranks or by none:
// docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/cudagraph.html
void TrainingStep::Capture(const InputBatch& batch, BatchPlace place) {
  std::exception_ptr error;
  try {
    captured_[{batch.pixels, place}] =
        deps_.backend.Capture(deps_.stream, [&] { QueueCalls(batch, place); });
  } catch (const Error& thrown) {
    error = std::current_exception();
    not_captured_ = thrown.what();
  }
  double failed = error ? deps_.communicator.rank() : -1;  // the highest of the ranks that have
  deps_.communicator.AllReduceMax({&failed, 1});
  if (failed < 0) return;
  const std::string who = fmt::format("rank {:.0f} cannot record them", failed);
  if (deps_.config.graph == StepGraph::kOn) {
    if (error) std::rethrow_exception(error);
    throw Error(EX_UNAVAILABLE, "--graph=on: training steps cannot run as one graph each: " + who +
                                    " and says why; --graph=auto does without");
  }
  if (!error) not_captured_ = who;
  records_ = false;
  captured_.clear();
}

void TrainingStep::QueueCalls(const InputBatch& batch, BatchPlace place) {
  Stream& stream = deps_.stream;
  SharedStepScalars& numbers = deps_.device_batch.numbers();
  const auto& marks = here().marks;
  if (place.is_first) KeepStatistics();
  numbers.ToDevice(stream);
  marks[0]->RecordTime(stream);
  QueueForward(batch);
  marks[1]->RecordTime(stream);
  {
    const RangeOfScope range(deps_.backend, NameOf(StepPhase::kBackward).data());
    overlap_.Backward(place, stream);
  }
  marks[2]->RecordTime(stream);
  if (place.is_last) QueueUpdate();
  numbers.ToHost(stream);
}

void TrainingStep::QueueForward(const InputBatch& batch) {
  const RangeOfScope range(deps_.backend, NameOf(StepPhase::kForward).data());
  LossSums* sums = &deps_.device_batch.numbers().device()->loss_sums;
  deps_.network.Forward(mode_, batch, sums, deps_.stream);
}

void TrainingStep::QueueUpdate() {
  Stream& stream = deps_.stream;
  StepScalars* numbers = deps_.device_batch.numbers().device();
  {
    const RangeOfScope range(deps_.backend, NameOf(StepPhase::kExposedAllReduce).data());
    overlap_.Finish(stream);
  }
  here().marks[3]->RecordTime(stream);
  {
    const RangeOfScope range(deps_.backend, NameOf(StepPhase::kUpdate).data());
    overlap_.Update(&numbers->update, &numbers->update_sums, stream);
    deps_.network.UpdateEma(&numbers->update_sums, stream);
  }
  here().marks[4]->RecordTime(stream);
}

StepTimes TrainingStep::Times(const QueuedBatch& batch) const {
  const auto& marks = batch.place->marks;
  StepTimes times;
  times[StepPhase::kInputWait] = feed_.waited();
  times[StepPhase::kForward] = marks[1]->SecondsSince(*marks[0]);
  times[StepPhase::kBackward] = marks[2]->SecondsSince(*marks[1]);
  if (!PlaceInStep(batch.index).is_last) return times;
  times[StepPhase::kExposedAllReduce] = marks[3]->SecondsSince(*marks[2]);
  times[StepPhase::kUpdate] = marks[4]->SecondsSince(*marks[3]);
  return times;
}

}  // namespace trainer
