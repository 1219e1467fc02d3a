// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/batch_feed.h"

#include <algorithm>

#include "trainer/core/error.h"

namespace trainer {

BatchFeed::BatchFeed(Backend& backend, DeviceBatch& device_batch, Source& source, std::int64_t end)
    : device_batch_(device_batch),
      source_(source),
      ahead_(!backend.is_host()),
      end_(end),
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

InputBatch BatchFeed::Take(std::int64_t step, float mixup_lambda, float loss_scale,
                           Stream& stream) {
  DDL_CHECK(Has(step, stream));
  return device_batch_.Use(mixup_lambda, loss_scale, stream);
}

void BatchFeed::FetchNext(std::int64_t step, Stream& stream) {
  DDL_CHECK(fetched_ == step);
  // The source may overwrite the batch after this.
  device_batch_.arrived().Synchronize();
  idle_->Synchronize();
  waited_ = std::max(0.0, device_batch_.arrived().SecondsSince(*idle_));
  if (ahead_ && step + 1 < end_) Fetch(step + 1, stream);
}

void BatchFeed::Fetch(std::int64_t step, Stream& stream) {
  fetched_ = step;
  idle_->Record(stream);
  try {
    HostBatch batch;
    is_there_ = source_.Next(batch);
    if (!is_there_) return;
    DDL_CHECK(batch.step == step);
    device_batch_.StartUpload(batch);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace trainer
