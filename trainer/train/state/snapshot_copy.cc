// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/snapshot_copy.h"

#include <algorithm>
#include <cstddef>
#include <utility>

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

}  // namespace trainer
