// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/training_session.h"

#include <utility>

#include "trainer/model/init.h"
#include "trainer/model/network.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

NetworkDefinition TakePlan(const TrainConfig& config, const TrainerDeps& deps) {
  if (deps.network != nullptr) return std::move(*deps.network);
  return DefineNetwork(deps.backend, NetworkSpecOf(config));
}

// What the rooflines are about.
std::optional<ImageWork> WorkOf(const TrainConfig& config, const Backend& backend) {
  const bool is_known = config.arch == "resnet50" && config.image_size == 224 &&
                        backend.compute_type() != DType::kFloat32;
  return is_known ? std::optional(kResNet50Work) : std::nullopt;
}

}  // namespace

Launch::Launch(const TrainConfig& train_config, const TrainerDeps& trainer_deps)
    : config(train_config),
      deps(trainer_deps),
      network(deps.backend, TakePlan(config, deps)),
      stream(deps.backend.MakeStream()),
      device_batch(deps.backend, network.spec()),
      loss_scale(FirstLossScale()),
      report(config, deps.communicator, deps.outputs, WorkOf(config, deps.backend)),
      control(deps, report) {
  if (config.mode == RunMode::kTrainAndEvaluate) {
    evaluation_batch.emplace(deps.backend, network.spec());
  }
  if (deps.communicator.size() > 1) deps.agree(WeightLayout(network, deps.backend, *stream));
}

LossScale Launch::FirstLossScale() const {
  if (deps.backend.compute_type() == DType::kFloat32) return LossScale::Static(1);
  return config.use_static_loss_scaling ? LossScale::Static(config.loss_scale)
                                        : LossScale::Dynamic(config.loss_scale);
}

SnapshotDeps Launch::snapshot_deps() {
  return {config,  network,          deps.communicator,
          *stream, deps.outputs.log, deps.backend.compute_type()};
}

// Rank 0's values count: logarithms and square roots of other processors and C libraries may differ
// in the last bit, and what starts apart stays apart.
void Launch::InitializeAfresh() {
  if (deps.communicator.rank() == 0) {
    Initialize(network, {config.seed, config.weight_init, config.zero_init_residual}, *stream);
  }
  BroadcastPart(network, Network::Part::kValue, deps.communicator, *stream);
  if (network.has_ema()) network.InitEma(*stream);
}

std::optional<EvaluationResult> Launch::RunEvaluation(std::int64_t step) {
  control.Enter(Activity::kEvaluation, step);
  report.StartEvaluation(step, deps.evaluation->samples());
  DeviceBatch& batch = evaluation_batch ? *evaluation_batch : device_batch;
  std::optional<EvaluationResult> result;
  SwapInEma(network, *stream, [&] {
    result = Evaluate({deps.backend, network, batch, deps.communicator, *stream}, *deps.evaluation,
                      [this] { return control.Requested().stop; });
  });
  if (!result) return result;
  RequireNumbers(*result, IsTraining(config.mode));
  report.EndEvaluation(step, *result);
  return result;
}

bool Launch::IsToStop() const {
  StepExchange own;
  own.requested.stop = deps.stop_requested();
  return Exchange(own, deps.communicator).requested.stop;
}

}  // namespace trainer
