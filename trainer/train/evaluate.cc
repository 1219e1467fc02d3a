// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluate.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/train/metrics.h"
#include "trainer/train/rank_statistics.h"

namespace trainer {
namespace {

// The sums of one batch, over all ranks.
StepExchange CountBatch(const EvaluationParts& parts, const HostBatch& batch, bool stop) {
  StepExchange own;
  own.totals.Add(Infer(parts.network, parts.device_batch, batch, parts.stream));
  own.asked.stop = stop;
  return Exchange(own, parts.communicator);
}

}  // namespace

std::optional<EvaluationResult> Evaluate(const EvaluationParts& parts, Source& source,
                                         const std::function<bool()>& stop_requested) {
  const std::vector<float> own = ExportStatistics(parts.network, parts.stream);
  ImportStatistics(parts.network, MeanOverRanks(own, parts.communicator), parts.stream);

  const auto start = std::chrono::steady_clock::now();
  LossTotals totals;
  EvaluationResult result;
  bool stopped = false;
  source.Seek({});
  for (HostBatch batch; !stopped && source.Next(batch); ++result.steps) {
    const StepExchange all = CountBatch(parts, batch, stop_requested());
    totals.Add(all.totals);
    stopped = all.asked.stop;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  ImportStatistics(parts.network, own, parts.stream);

  if (stopped) return std::nullopt;
  if (totals.samples == 0) {
    throw Error(EX_DATAERR, "there is no image to evaluate: check the validation-* files");
  }
  result.top1 = totals.top1_fraction();
  result.top5 = totals.top5_fraction();
  result.loss = totals.mean_loss();
  if (!std::isfinite(result.loss)) {
    throw Error(EX_SOFTWARE, fmt::format("the loss of the evaluation is {}: training has diverged, "
                                         "or the weights are broken; train again with a smaller "
                                         "--lr_init or more --lr_warmup_epochs",
                                         result.loss));
  }
  result.images = static_cast<std::int64_t>(totals.samples);
  result.seconds = elapsed.count();
  result.images_per_second = totals.samples / elapsed.count();
  return result;
}

}  // namespace trainer
