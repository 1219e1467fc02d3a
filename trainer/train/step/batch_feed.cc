// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/batch_feed.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "trainer/core/error.h"
#include "trainer/core/philox.h"

namespace trainer {

BatchFeed::BatchFeed(Backend& backend, DeviceBatch& device_batch, DataLoader& source,
                     std::int64_t end, const Mixup& mixup)
    : backend_(backend),
      device_batch_(device_batch),
      source_(source),
      ahead_(!backend.is_host()),
      end_(end),
      mixup_(mixup),
      idle_(backend.MakeEvent()) {}

void BatchFeed::Restart(std::int64_t end) {
  if (fetched_ >= 0) device_batch_.arrived().Synchronize();
  fetched_ = -1;
  failure_ = nullptr;
  end_ = end;
}

bool BatchFeed::Has(std::int64_t step, Stream& stream) {
  DDL_CHECK(step < end_);
  if (fetched_ != step) Fetch(step, stream);
  if (failure_) std::rethrow_exception(failure_);
  return is_there_;
}

InputBatch BatchFeed::Take(std::int64_t step, float loss_scale, Stream& stream) {
  DDL_CHECK(Has(step, stream));
  return device_batch_.Use(loss_scale, stream);
}

void BatchFeed::FetchNext(std::int64_t step, Stream& stream) {
  DDL_CHECK(fetched_ == step);
  // The source may overwrite the batch after this.
  device_batch_.arrived().Synchronize();
  idle_->Synchronize();
  waited_ = std::max(0.0, device_batch_.arrived().SecondsSince(*idle_));
  if (ahead_ && step + 1 < end_) Fetch(step + 1, stream);
}

// Over those of the batch before, which has been used, or has arrived, by now.
const float* BatchFeed::DrawLambda(const HostBatch& batch) {
  if (mixup_.a == 0) return nullptr;
  const std::size_t images = batch.labels.size();
  if (lambda_.bytes() == 0) lambda_ = backend_.AllocateHost(images * sizeof(float));
  const std::span lambda(reinterpret_cast<float*>(lambda_.data()), images);
  for (std::size_t i = 0; i < images; ++i) {
    Random random(mixup_.seed, RandomPurpose::kMixup, static_cast<std::uint64_t>(batch.sample) + i);
    lambda[i] = static_cast<float>(random.Beta(mixup_.a, mixup_.a));
  }
  return lambda.data();
}

void BatchFeed::Fetch(std::int64_t step, Stream& stream) {
  fetched_ = step;
  idle_->Record(stream);
  try {
    HostBatch batch;
    is_there_ = source_.Next(batch);
    if (!is_there_) return;
    DDL_CHECK(batch.step == step);
    device_batch_.StartUpload(batch, DrawLambda(batch));
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace trainer
