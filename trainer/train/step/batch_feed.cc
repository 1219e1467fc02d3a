// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/batch_feed.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <span>

#include "trainer/core/error.h"
#include "trainer/core/philox.h"

namespace trainer {

DeviceBatch::DeviceBatch(Backend& backend, const NetworkSpec& spec)
    : backend_(backend),
      images_(static_cast<std::size_t>(spec.batch_size)),
      image_bytes_(static_cast<std::size_t>(spec.height * spec.width * 3)),
      copies_(backend.MakeStream()),
      arrived_(backend.MakeEvent()),
      numbers_{SharedStepScalars(backend), SharedStepScalars(backend)} {
  if (backend.is_host()) return;
  for (Slot& slot : slots_) {
    slot.pixels = backend.AllocateDevice(images_ * image_bytes_);
    slot.mirror = backend.AllocateDevice(images_);
    slot.labels = backend.AllocateDevice(images_ * sizeof(std::int32_t));
    slot.lambda = backend.AllocateDevice(images_ * sizeof(float));
  }
}

void DeviceBatch::StartUpload(const HostBatch& batch, const float* lambda) {
  if (backend_.is_host()) {
    batch_ = {batch.pixels.data(), batch.mirror.data(), batch.labels.data(), lambda, nullptr};
  } else {
    last_ = 1 - last_;
    const Slot& slot = slots_[last_];
    const auto copy = [&](const Buffer& dst, const auto& src) {
      DDL_CHECK(src.size_bytes() == dst.bytes());
      backend_.CopyToDevice(dst.data(), src.data(), src.size_bytes(), *copies_);
    };
    copy(slot.pixels, batch.pixels);
    copy(slot.mirror, batch.mirror);
    copy(slot.labels, batch.labels);
    if (lambda != nullptr) copy(slot.lambda, std::span(lambda, batch.labels.size()));
    batch_ = {reinterpret_cast<const std::uint8_t*>(slot.pixels.data()),
              reinterpret_cast<const std::uint8_t*>(slot.mirror.data()),
              reinterpret_cast<const std::int32_t*>(slot.labels.data()),
              lambda == nullptr ? nullptr : reinterpret_cast<const float*>(slot.lambda.data()),
              nullptr};
  }
  DDL_CHECK(batch.valid >= 0 && batch.valid <= std::ssize(batch.labels));
  valid_ = batch.valid;
  arrived_->Record(*copies_);
}

void DeviceBatch::StartBlank() {
  blank_.pixels.resize(images_ * image_bytes_);
  blank_.mirror.resize(images_);
  blank_.labels.resize(images_);
  StartUpload({.pixels = blank_.pixels,
               .mirror = blank_.mirror,
               .labels = blank_.labels,
               .valid = static_cast<std::int64_t>(images_)});
}

InputBatch DeviceBatch::Use(float loss_scale, Stream& stream) {
  arrived_->MakeWait(stream);
  used_ = last_;
  numbers().host() = {.loss = {valid_, loss_scale}, .update = {}};
  batch_.loss = &numbers().device()->loss;
  return batch_;
}

void QueueInference(Network& network, DeviceBatch& device_batch, const InputBatch& input,
                    Stream& stream) {
  SharedStepScalars& numbers = device_batch.numbers();
  numbers.ToDevice(stream);
  network.Forward(Mode::kInference, input, &numbers.device()->loss_sums, stream);
  numbers.ToHost(stream);
}

LossSums Infer(Network& network, DeviceBatch& device_batch, const HostBatch& batch,
               Stream& stream) {
  device_batch.StartUpload(batch);
  const InputBatch input = device_batch.Use(/*loss_scale=*/1, stream);
  QueueInference(network, device_batch, input, stream);
  stream.Synchronize();
  return device_batch.numbers().host().loss_sums;
}

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
  device_batch_.StartOver();
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

InputBatch BatchFeed::TakeBlank(Stream& stream) {
  DDL_CHECK(failure_ != nullptr);
  device_batch_.StartBlank();
  return device_batch_.Use(std::numeric_limits<float>::quiet_NaN(), stream);
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
  if (failure_) return;
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
