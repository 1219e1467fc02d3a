// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/gradients.h"

#include <algorithm>

#include "trainer/core/error.h"

namespace trainer {

GradientOverlap::GradientOverlap(Backend& backend, Network& network, Communicator& communicator,
                                 bool in_compute_type, UpdateBatches batches,
                                 OptimizerKind optimizer, const GradientBucketBytes& bucket_bytes)
    : backend_(backend),
      network_(network),
      communicator_(communicator),
      batches_{batches.own, batches.all > 0 ? batches.all : batches.own * communicator.size()},
      bucket_bytes_(bucket_bytes),
      reduced_(network.gradients()),
      optimizer_(backend.MakeOptimizer(
          optimizer, TraitsOf(optimizer).is_by_tensor ? network.tensors() : network.segments())) {
  const std::size_t elements = network.elements();
  if (batches.own > 1) {
    DDL_CHECK(!in_compute_type);
    sum_.emplace(backend, network);
    reduced_ = {.fp32 = reduced_.fp32};
  }
  if (communicator.size() == 1) {
    if (sum_) buckets_.push_back({0, elements});
    return;
  }
  if (in_compute_type && reduced_.compute_from < elements) {
    DDL_CHECK(communicator.reduces_device_memory());
    reduction_ = Reduction::kMean;
    PlanBuckets(reduced_.compute_from, elements, backend.compute_type());
    PlanBuckets(0, reduced_.compute_from, DType::kFloat32);
    return;
  }
  reduced_ = {.fp32 = reduced_.fp32};
  PlanBuckets(0, elements, DType::kFloat32);
  if (backend.is_host() || communicator.reduces_device_memory()) return;
  staging_ = backend.AllocateHost(elements * sizeof(float));
  copies_ = backend.MakeStream();
  empty_ = backend.MakeStream();
  produced_ = backend.MakeEvent();
  for (std::size_t i = 0; i < buckets_.size(); ++i) arrived_.push_back(backend.MakeEvent());
}

AllocateMemory GradientMemory(Backend& backend, Communicator& communicator) {
  return [&](std::size_t bytes) {
    Buffer memory = communicator.AllocateReduced(bytes);
    if (memory.bytes() == 0) return backend.AllocateDevice(bytes);
    const auto stream = backend.MakeStream();
    backend.Zero(memory.data(), bytes, *stream);
    stream->Synchronize();
    return memory;
  };
}

void GradientOverlap::PlanBuckets(std::size_t begin, std::size_t end, DType type) {
  std::vector<std::size_t> ends;  // of gradients, alignment included
  for (const Parameter& parameter : network_.parameters()) {
    const bool inside = parameter.begin > begin && parameter.begin < end;
    if (!parameter.spec.statistic && inside) ends.push_back(parameter.begin - begin);
  }
  ends.push_back(end - begin);
  std::sort(ends.begin(), ends.end());
  for (GradientBucket bucket : PlanGradientBuckets(ends, SizeOf(type), bucket_bytes_)) {
    bucket.begin += begin;
    buckets_.push_back(bucket);
  }
}

void GradientOverlap::Backward(BatchPlace place, Stream& stream) {
  // A try to record this may have failed on the way; whatever it started does not count.
  if (place.is_last) started_ = 0;
  network_.Backward(stream, [&](std::size_t complete_from) {
    if (place.is_last) Ready(complete_from, stream);
  });
  if (!place.is_last) Keep(place.is_first, stream);
}

void GradientOverlap::Take(BatchPlace place, Stream& stream) {
  place.is_last ? Ready(0, stream) : Keep(place.is_first, stream);
}

void GradientOverlap::Update(const UpdateParameters* parameters, UpdateSums* sums, Stream& stream) {
  optimizer_->Step(parameters, network_.weights(), network_.momentum(), reduced_,
                   network_.compute_weights(), sums, stream);
}

void GradientOverlap::Keep(bool is_first, Stream& stream) { sum_->Keep(is_first, stream); }

void GradientOverlap::Ready(std::size_t complete_from, Stream& producer) {
  while (started_ < buckets_.size() && buckets_[started_].begin >= complete_from) {
    Start(started_++, producer);
  }
}

void GradientOverlap::Start(std::size_t index, Stream& producer) {
  const GradientBucket& bucket = buckets_[index];
  if (bucket.begin >= reduced_.compute_from) {
    const DType type = backend_.compute_type();
    auto* values = static_cast<std::byte*>(reduced_.compute) + bucket.begin * SizeOf(type);
    communicator_.StartAllReduce(values, bucket.count, type, reduction_, producer);
    return;
  }
  if (sum_) {
    sum_->Complete(bucket.begin, bucket.begin + bucket.count, producer);
  } else {
    Widen(bucket, producer);
  }
  if (communicator_.size() == 1) return;
  if (staging_.bytes() > 0) {
    StartCopy(index, producer);
  } else {
    communicator_.StartAllReduce(reduced_.fp32 + bucket.begin, bucket.count, DType::kFloat32,
                                 reduction_, producer);
  }
}

void GradientOverlap::StartCopy(std::size_t index, Stream& producer) {
  const GradientBucket& bucket = buckets_[index];
  produced_->Record(producer);
  produced_->MakeWait(*copies_);
  backend_.CopyToHost(reinterpret_cast<float*>(staging_.data()) + bucket.begin,
                      reduced_.fp32 + bucket.begin, bucket.count * sizeof(float), *copies_);
  arrived_[index]->Record(*copies_);
}

void GradientOverlap::SumStaged() {
  auto* staged = reinterpret_cast<float*>(staging_.data());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    arrived_[i]->Synchronize();
    communicator_.StartAllReduce(staged + buckets_[i].begin, buckets_[i].count, DType::kFloat32,
                                 reduction_, *empty_);
  }
}

// Those of the compute type among it, into the place that fp32 has for them.
void GradientOverlap::Widen(const GradientBucket& bucket, Stream& producer) {
  const FlatGradients own = network_.gradients();
  const std::size_t begin = std::max(bucket.begin, own.compute_from);
  const std::size_t end = bucket.begin + bucket.count;
  if (begin >= end) return;
  const auto* values =
      static_cast<const std::byte*>(own.compute) + begin * SizeOf(backend_.compute_type());
  backend_.Widen(values, own.fp32 + begin, end - begin, producer);
}

void GradientOverlap::Finish(Stream& consumer) {
  DDL_CHECK(started_ == buckets_.size());
  started_ = 0;
  if (communicator_.size() == 1) return;
  if (staging_.bytes() > 0) SumStaged();
  communicator_.Finish(consumer);
  if (staging_.bytes() > 0) {
    backend_.CopyToDevice(reduced_.fp32, staging_.data(), staging_.bytes(), consumer);
  }
}

GradientAccumulator::GradientAccumulator(Backend& backend, const Network& network)
    : backend_(backend),
      gradients_(network.gradients()),
      elements_(network.elements()),
      compute_from_(std::min(gradients_.compute_from, elements_)),
      kept_(backend.AllocateDevice(compute_from_ * sizeof(float))) {}

std::size_t GradientAccumulator::BytesFor(const ParameterLayout& layout) {
  return std::min(layout.compute_from, layout.elements) * sizeof(float);
}

void GradientAccumulator::Keep(bool is_first, Stream& stream) {
  auto* kept = reinterpret_cast<float*>(kept_.data());
  float* sums = gradients_.fp32 + compute_from_;
  const void* values = OfComputeType(compute_from_);
  const std::size_t count = elements_ - compute_from_;
  if (is_first) {
    backend_.CopyOnDevice(kept, gradients_.fp32, kept_.bytes(), stream);
    if (count > 0) backend_.Widen(values, sums, count, stream);
  } else {
    backend_.Add(gradients_.fp32, DType::kFloat32, kept, compute_from_, stream);
    if (count > 0) backend_.Add(values, backend_.compute_type(), sums, count, stream);
  }
}

void GradientAccumulator::Complete(std::size_t begin, std::size_t end, Stream& stream) {
  const std::size_t middle = std::clamp(compute_from_, begin, end);
  if (begin < middle) {
    const auto* kept = reinterpret_cast<const float*>(kept_.data());
    backend_.Add(kept + begin, DType::kFloat32, gradients_.fp32 + begin, middle - begin, stream);
  }
  if (middle < end) {
    backend_.Add(OfComputeType(middle), backend_.compute_type(), gradients_.fp32 + middle,
                 end - middle, stream);
  }
}

const void* GradientAccumulator::OfComputeType(std::size_t begin) const {
  if (gradients_.compute == nullptr) return nullptr;
  return static_cast<const std::byte*>(gradients_.compute) +
         begin * SizeOf(backend_.compute_type());
}

}  // namespace trainer
