// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/launch.h"

#include <utility>

#include "trainer/model/init.h"
#include "trainer/model/weight_layout.h"
#include "trainer/train/state/averages_in_place.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

NetworkPlan TakePlan(const TrainConfig& config, const TrainParts& parts) {
  if (parts.network != nullptr) return std::move(*parts.network);
  return PlanNetwork(parts.backend, NetworkSpecOf(config));
}

// What the rooflines are about.
std::optional<ImageWork> WorkOf(const TrainConfig& config, const Backend& backend) {
  const bool is_known = config.arch == "resnet50" && config.image_size == 224 &&
                        backend.compute_type() != DType::kFloat32;
  return is_known ? std::optional(kResNet50Work) : std::nullopt;
}

}  // namespace

Launch::Launch(const TrainConfig& train_config, const TrainParts& train_parts)
    : config(train_config),
      parts(train_parts),
      network(parts.backend, TakePlan(config, parts)),
      stream(parts.backend.MakeStream()),
      device_batch(parts.backend, network.spec()),
      loss_scale(FirstLossScale()),
      report(config, parts.communicator, parts.outputs, WorkOf(config, parts.backend)),
      control(parts, report) {
  if (config.mode == RunMode::kTrainAndEvaluate) {
    evaluation_batch.emplace(parts.backend, network.spec());
  }
  if (parts.communicator.size() > 1) parts.agree(WeightLayout(network, parts.backend, *stream));
}

LossScale Launch::FirstLossScale() const {
  if (parts.backend.compute_type() == DType::kFloat32) return LossScale::Static(1);
  return config.use_static_loss_scaling ? LossScale::Static(config.loss_scale)
                                        : LossScale::Dynamic(config.loss_scale);
}

SnapshotParts Launch::snapshot_parts() {
  return {config,  network,           parts.communicator,
          *stream, parts.outputs.log, parts.backend.compute_type()};
}

// Rank 0's values count: logarithms and square roots of other processors and C libraries may differ
// in the last bit, and what starts apart stays apart.
void Launch::InitializeAfresh() {
  if (parts.communicator.rank() == 0) {
    Initialize(network, {config.seed, config.weight_init, config.zero_init_residual}, *stream);
  }
  BroadcastPart(network, Network::Part::kValue, parts.communicator, *stream);
  if (network.keeps_averages()) network.StartAverages(*stream);
}

std::optional<EvaluationResult> Launch::RunEvaluation(std::int64_t step) {
  control.Enter(Activity::kEvaluation, step);
  report.StartEvaluation(step, parts.evaluation->samples());
  DeviceBatch& batch = evaluation_batch ? *evaluation_batch : device_batch;
  std::optional<EvaluationResult> result;
  UseAverages(network, *stream, [&] {
    result = Evaluate({parts.backend, network, batch, parts.communicator, *stream},
                      *parts.evaluation, [this] { return control.Requested().stop; });
  });
  if (!result) return result;
  RequireNumbers(*result, IsTraining(config.mode));
  report.EndEvaluation(step, *result);
  return result;
}

bool Launch::IsToStop() const {
  StepExchange own;
  own.requested.stop = parts.stop_requested();
  return Exchange(own, parts.communicator).requested.stop;
}

}  // namespace trainer
