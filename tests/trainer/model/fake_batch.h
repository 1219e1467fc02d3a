// SPDX-License-Identifier: Apache-2.0
//
// A batch of noise with labels 0, 1, 2, ..., in the memory of a back end that computes on the host.

#pragma once

#include <cstdint>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/core/philox.h"

namespace trainer {

class FakeBatch {
 public:
  FakeBatch(Backend& backend, std::int64_t batch, std::int64_t size, std::int64_t classes,
            std::uint64_t seed = 1) {
    const auto count = static_cast<std::size_t>(batch);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(batch * size * size * 3));
    Random random(seed, RandomPurpose::kSynthetic, 0);
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.Below(256));
    std::vector<std::uint8_t> mirror(count);
    std::vector<std::int32_t> labels(count);
    for (std::size_t n = 0; n < count; ++n) {
      mirror[n] = n % 2;
      labels[n] = static_cast<std::int32_t>(n % static_cast<std::size_t>(classes));
    }
    const auto stream = backend.MakeStream();
    const auto upload = [&](const auto& values) {
      const std::size_t bytes = values.size() * sizeof(values[0]);
      Buffer buffer = backend.AllocateDevice(bytes);
      backend.CopyToDevice(buffer.data(), values.data(), bytes, *stream);
      stream->Synchronize();
      return buffer;
    };
    pixels_ = upload(pixels);
    mirror_ = upload(mirror);
    labels_ = upload(labels);
    input_.pixels = reinterpret_cast<const std::uint8_t*>(pixels_.data());
    input_.mirror = reinterpret_cast<const std::uint8_t*>(mirror_.data());
    input_.labels = reinterpret_cast<const std::int32_t*>(labels_.data());
    loss_ = upload(std::vector<LossParameters>{{.valid = batch}});
    input_.loss = reinterpret_cast<const LossParameters*>(loss_.data());
  }

  FakeBatch(const FakeBatch&) = delete;
  FakeBatch& operator=(const FakeBatch&) = delete;

  const InputBatch& input() const { return input_; }
  // For the Forward calls that follow, on a back end whose memory is the host's.
  LossParameters& loss() { return *reinterpret_cast<LossParameters*>(loss_.data()); }

 private:
  Buffer pixels_;
  Buffer mirror_;
  Buffer labels_;
  Buffer loss_;
  InputBatch input_;
};

}  // namespace trainer
