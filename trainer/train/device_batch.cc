// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/device_batch.h"

#include <span>

#include "trainer/core/error.h"

namespace trainer {

DeviceBatch::DeviceBatch(Backend& backend, const NetworkSpec& spec)
    : backend_(backend),
      pixels_(backend.AllocateDevice(
          static_cast<std::size_t>(spec.batch * spec.height * spec.width * 3))),
      mirror_(backend.AllocateDevice(static_cast<std::size_t>(spec.batch))),
      labels_(backend.AllocateDevice(static_cast<std::size_t>(spec.batch) * sizeof(std::int32_t))) {
}

InputBatch DeviceBatch::Upload(const HostBatch& batch, float mixup_lambda, Stream& stream) {
  const auto copy = [&](const Buffer& dst, const auto& src) {
    DDL_CHECK(src.size_bytes() == dst.bytes());
    backend_.CopyToDevice(dst.data(), src.data(), src.size_bytes(), stream);
  };
  copy(pixels_, batch.pixels);
  copy(mirror_, batch.mirror);
  copy(labels_, batch.labels);
  return {reinterpret_cast<const std::uint8_t*>(pixels_.data()),
          reinterpret_cast<const std::uint8_t*>(mirror_.data()),
          reinterpret_cast<const std::int32_t*>(labels_.data()), batch.valid, mixup_lambda};
}

}  // namespace trainer
