// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluation/evaluate.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "trainer/checkpoint/retention.h"
#include "trainer/core/error.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

// Counts batches as they are done.
class EvaluationCount {
 public:
  EvaluationCount(Communicator& communicator, const std::function<bool()>& stop_requested)
      : communicator_(communicator), stop_requested_(stop_requested) {}

  // This rank's sums of one more batch; counted by the next Count.
  void Add(const LossSums& sums) { own_.emplace().totals.Add(sums); }
  // Counts that batch, if there is one, over all ranks.  Collective.
  void Count() {
    if (!own_) return;
    own_->requested.stop = stop_requested_();
    const StepExchange all = Exchange(*own_, communicator_);
    own_.reset();
    totals_.Add(all.totals);
    ++steps_;
    stopped_ = all.requested.stop;
  }

  const LossTotals& totals() const { return totals_; }
  std::int64_t steps() const { return steps_; }
  bool stopped() const { return stopped_; }

 private:
  Communicator& communicator_;
  const std::function<bool()>& stop_requested_;
  std::optional<StepExchange> own_;  // not counted yet
  LossTotals totals_;
  std::int64_t steps_ = 0;
  bool stopped_ = false;
};

// All batches of the source, or those up to the one at which some rank was asked to stop.  On the
// host each is counted as soon as it is done: nothing else runs meanwhile.
EvaluationCount CountBatches(const EvaluationDeps& deps, DataLoader& source,
                             const std::function<bool()>& stop_requested) {
  constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  EvaluationCount count(deps.communicator, stop_requested);
  BatchFeed feed(deps.backend, deps.device_batch, source, kNoEnd);
  source.Seek({});
  for (std::int64_t step = 0; !count.stopped() && feed.Has(step, deps.stream); ++step) {
    const InputBatch input = feed.Take(step, /*loss_scale=*/1, deps.stream);
    QueueInference(deps.network, deps.device_batch, input, deps.stream);
    feed.FetchNext(step, deps.stream);
    count.Count();
    deps.stream.Synchronize();
    count.Add(deps.device_batch.numbers().host().loss_sums);
    if (deps.backend.is_host()) count.Count();
  }
  if (count.stopped()) {
    // What was fetched and is not used may still be on its way.
    deps.device_batch.arrived().Synchronize();
  } else {
    count.Count();
  }
  return count;
}

}  // namespace

std::optional<EvaluationResult> Evaluate(const EvaluationDeps& deps, DataLoader& source,
                                         const std::function<bool()>& stop_requested) {
  const std::vector<float> own = ExportStatistics(deps.network, deps.stream);
  ImportStatistics(deps.network, MeanOverRanks(own, deps.communicator), deps.stream);

  const auto start = std::chrono::steady_clock::now();
  const EvaluationCount count = CountBatches(deps, source, stop_requested);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  ImportStatistics(deps.network, own, deps.stream);

  if (count.stopped()) return std::nullopt;
  const LossTotals& totals = count.totals();
  if (totals.samples == 0) {
    throw Error(EX_DATAERR, "there is no image to evaluate: check the validation-* files");
  }
  EvaluationResult result;
  result.steps = count.steps();
  result.top1 = totals.top1_fraction();
  result.top5 = totals.top5_fraction();
  result.loss = totals.mean_loss();
  result.images = static_cast<std::int64_t>(totals.samples);
  result.seconds = elapsed.count();
  result.images_per_second = totals.samples / elapsed.count();
  return result;
}

void RequireNumbers(const EvaluationResult& result, bool is_of_training) {
  if (std::isfinite(result.loss)) return;
  throw NotFinite(fmt::format(
      "the loss of the evaluation is {}: {}", result.loss,
      is_of_training ? "training has diverged, or the weights are broken; train again with a "
                       "smaller --lr_init or more --lr_warmup_epochs"
                     : "the training that these weights are of has diverged, or they are broken; "
                       "evaluate others"));
}

Evaluations::Evaluations(const TrainConfig& config, Communicator& communicator,
                         const Schedule& schedule)
    : config_(config), schedule_(schedule) {
  std::array<double, 2> noted = {-1, -1};
  if (communicator.rank() == 0) {
    const std::vector<EvaluatedCheckpoint> evaluated = ListEvaluated(ModelDirectory(config)).known;
    for (const EvaluatedCheckpoint& checkpoint : evaluated) {
      if (checkpoint.step == schedule.start.step) noted[0] = checkpoint.top1;
    }
    if (const auto best = BestOf(evaluated)) noted[1] = best->top1;
  }
  communicator.Broadcast(noted.data(), sizeof noted, 0);
  first_top1_ = noted[0];
  best_top1_ = noted[1];
}

bool Evaluations::IsDue(std::int64_t step) const {
  return config_.eval_every > 0 && step < schedule_.total_steps &&
         schedule_.EndsPeriod(step, config_.eval_every);
}

bool Evaluations::Add(double top1) {
  if (top1 <= best_top1_) return false;
  best_top1_ = top1;
  return true;
}

bool Evaluations::ReachesTarget(double top1) const {
  // 28,500 of 50,000 are 56.99999999999999 % in doubles; one image of a billion is less than this.
  constexpr double kRounding = 1e-9;
  return config_.stop_at_top1 > 0 && top1 * 100 >= config_.stop_at_top1 - kRounding;
}

}  // namespace trainer
