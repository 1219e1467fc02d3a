// SPDX-License-Identifier: Apache-2.0

#include "bench/report/predicted_scaling.h"

#include "bench/report/readers/run.h"
#include "scaling/predict.h"

namespace bench {
namespace {

// Images of a rank in a step; 0 where a run has not said it, and of networks other than ResNet-50.
double BatchOf(const ReportModel& model, const ScalingPoint& point) {
  const std::size_t run = model.groups[point.group].runs.front();
  const std::string arch = SettingOf(model.runs[run].settings, "arch");
  if (!arch.empty() && arch != "resnet50") return 0;
  return static_cast<double>(model.figures[run].global_batch.value_or(0)) /
         static_cast<double>(point.ranks);
}

void PredictPoints(const ReportModel& model, const scaling::Machine& machine, Scaling& curve) {
  scaling::Training training;
  training.links = scaling::LinksOf(machine);
  const std::int64_t gpus = training.links.gpus_per_node;
  scaling::Speeds speeds;
  for (const ScalingPoint& point : curve.points) {
    if (point.ranks == 1) speeds.one_gpu = point.images_per_second.value;
    if (point.ranks == gpus) speeds.one_node = point.images_per_second.value;
    if (point.ranks == 2 * gpus) speeds.two_nodes = point.images_per_second.value;
  }
  const ScalingPoint& first = curve.points.front();
  training.batch = BatchOf(model, first);
  if (speeds.one_gpu <= 0 || training.batch <= 0) return;
  const std::size_t run = model.groups[first.group].runs.front();
  if (SettingOf(model.runs[run].settings, "reduce_precision") == "16bit") {
    training.sums = scaling::AllReduceModel::kHalf;
  }
  scaling::StepWork work;
  work.buckets = scaling::ResNet50Buckets(training.sums, training.rule);
  training.work =
      scaling::Calibrate(work, training.links, training.batch, speeds, scaling::Overlap::kAuto)
          .work;
  for (ScalingPoint& point : curve.points) {
    point.predicted = Predict(training, static_cast<int>(point.ranks)).images_per_second;
  }
}

}  // namespace

void AddPredictions(ReportModel& model, const scaling::Machine& machine) {
  for (Scaling& curve : model.scalings) PredictPoints(model, machine, curve);
}

}  // namespace bench
