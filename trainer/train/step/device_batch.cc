// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/device_batch.h"

#include <iterator>
#include <span>

#include "trainer/core/error.h"

namespace trainer {

DeviceBatch::DeviceBatch(Backend& backend, const NetworkSpec& spec)
    : backend_(backend),
      copies_(backend.MakeStream()),
      arrived_(backend.MakeEvent()),
      numbers_(backend) {
  batch_.loss = &numbers_.device()->loss;
  if (backend.is_host()) return;
  const auto images = static_cast<std::size_t>(spec.batch_size);
  const auto image_bytes = static_cast<std::size_t>(spec.height * spec.width * 3);
  for (Slot& slot : slots_) {
    slot.pixels = backend.AllocateDevice(images * image_bytes);
    slot.mirror = backend.AllocateDevice(images);
    slot.labels = backend.AllocateDevice(images * sizeof(std::int32_t));
    slot.lambda = backend.AllocateDevice(images * sizeof(float));
  }
}

void DeviceBatch::StartUpload(const HostBatch& batch, const float* lambda) {
  if (backend_.is_host()) {
    batch_ = {batch.pixels.data(), batch.mirror.data(), batch.labels.data(), lambda, batch_.loss};
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
              batch_.loss};
  }
  DDL_CHECK(batch.valid >= 0 && batch.valid <= std::ssize(batch.labels));
  valid_ = batch.valid;
  arrived_->Record(*copies_);
}

InputBatch DeviceBatch::Use(float loss_scale, Stream& stream) {
  arrived_->MakeWait(stream);
  numbers_.host() = {.loss = {valid_, loss_scale}, .update = {}};
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

}  // namespace trainer
