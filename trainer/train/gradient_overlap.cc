// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/gradient_overlap.h"

#include "trainer/core/error.h"

namespace trainer {
namespace {

// Where each gradient ends, its alignment included.
std::vector<std::size_t> TensorEnds(const Network& network) {
  std::vector<std::size_t> ends;
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.spec.statistic && parameter.begin > 0) ends.push_back(parameter.begin);
  }
  ends.push_back(network.elements());
  return ends;
}

}  // namespace

GradientOverlap::GradientOverlap(Backend& backend, const Network& network,
                                 Communicator& communicator)
    : backend_(backend),
      network_(network),
      communicator_(communicator),
      buckets_(PlanGradientBuckets(TensorEnds(network), sizeof(float))) {
  if (backend.is_host() || communicator.size() == 1 || communicator.sums_device_memory()) return;
  staging_ = backend.AllocateHost(network.elements() * sizeof(float));
}

void GradientOverlap::Ready(std::size_t complete_from, Stream& producer) {
  if (communicator_.size() == 1) return;  // the sum is there
  while (started_ < buckets_.size() && buckets_[started_].begin >= complete_from) {
    const GradientBucket& bucket = buckets_[started_++];
    float* values = network_.gradients() + bucket.begin;
    if (staging_.bytes() > 0) {
      auto* staged = reinterpret_cast<float*>(staging_.data()) + bucket.begin;
      backend_.CopyToHost(staged, values, bucket.count * sizeof(float), producer);
      values = staged;
    }
    communicator_.StartAllReduce(values, bucket.count, DType::kFloat32, producer);
  }
}

void GradientOverlap::Finish(Stream& consumer) {
  if (communicator_.size() == 1) return;
  DDL_CHECK(started_ == buckets_.size());
  started_ = 0;
  communicator_.Finish(consumer);
  if (staging_.bytes() > 0) {
    backend_.CopyToDevice(network_.gradients(), staging_.data(), staging_.bytes(), consumer);
  }
}

}  // namespace trainer
