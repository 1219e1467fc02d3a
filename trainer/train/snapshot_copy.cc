// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/snapshot_copy.h"

#include <algorithm>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/train/rank_statistics.h"

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
  values = momentum = 0;
  for (const Parameter& parameter : network.parameters()) {
    const auto add = [&](std::vector<TensorSource>& tensors, const Buffer& buffer,
                         std::size_t& begin) {
      tensors.push_back(
          {parameter.name, DType::kFloat32, parameter.spec.shape, FloatsIn(buffer) + begin});
      begin += ValueCount(parameter);
    };
    add(model_, values_, values);
    if (!parameter.spec.statistic) add(optimizer_, momentum_, momentum);
  }
}

void SnapshotCopy::Take(const Network& network, CheckpointState state, std::vector<float> rows,
                        Stream& stream) {
  state_ = std::move(state);
  rows_ = std::move(rows);
  const std::vector<float> mean = MeanOfRows(rows_, state_.world_size);
  float* value = FloatsIn(values_);
  float* momentum = FloatsIn(momentum_);
  const float* statistic = mean.data();
  for (const Parameter& parameter : network.parameters()) {
    const std::size_t count = ValueCount(parameter);
    if (parameter.spec.statistic) {
      std::copy_n(statistic, count, value);
      statistic += count;
    } else {
      network.Export(Network::Part::kValue, parameter, value, stream);
      network.Export(Network::Part::kMomentum, parameter, momentum, stream);
      momentum += count;
    }
    value += count;
  }
  DDL_CHECK(statistic == mean.data() + mean.size());
  if (optimizer_.back().name == kRankStatistics) optimizer_.pop_back();
  if (state_.world_size > 1) {
    const Shape all{state_.world_size, static_cast<std::int64_t>(mean.size())};
    optimizer_.push_back({kRankStatistics, DType::kFloat32, all, rows_.data()});
  }
}

}  // namespace trainer
