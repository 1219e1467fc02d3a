// SPDX-License-Identifier: Apache-2.0
//
// A source for tests that keeps the contract of data/data_loader.h: sample k is a function of k
// alone, so any number of ranks see the same run.  Class c has stripes of its own direction and
// width, on noise.

#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "trainer/core/philox.h"
#include "trainer/data/data_loader.h"
#include "trainer/data/shard_sampler.h"

namespace trainer {

struct GeneratedSourceOptions {
  std::int64_t batch = 4;
  std::int64_t size = 32;
  int classes = 4;
  int rank = 0;
  int ranks = 1;
  std::int64_t samples = 64;
  bool training = true;
  // In training, as GlobalBatch has them.
  std::int64_t accumulate = 1;
  int short_ranks = 0;
};

class GeneratedSource : public DataLoader {
 public:
  explicit GeneratedSource(const GeneratedSourceOptions& options)
      : options_(options),
        pixels_(static_cast<std::size_t>(options.batch * options.size * options.size * 3)),
        mirror_(static_cast<std::size_t>(options.batch)),
        labels_(static_cast<std::size_t>(options.batch)) {}

  std::int64_t samples() const override { return options_.samples; }
  void Seek(const Position& position) override {
    start_ = position;
    position_ = position;
  }

  bool Next(HostBatch& batch) override {
    const std::int64_t global_batch = options_.batch * options_.ranks;
    if (!options_.training && position_.sample >= options_.samples) return false;
    batch.valid = 0;
    for (std::int64_t place = 0; place < options_.batch; ++place) {
      const std::int64_t k = position_.sample + options_.rank * options_.batch + place;
      if (options_.training || k < options_.samples) ++batch.valid;
      Draw(k % options_.samples, place);
    }
    batch.pixels = pixels_;
    batch.mirror = mirror_;
    batch.labels = labels_;
    batch.step = position_.step;
    batch.sample = position_.sample + options_.rank * options_.batch;
    position_ = position_.At(position_.step + 1, global_batch);
    if (options_.training) {
      const GlobalBatch step = {options_.batch, options_.ranks, options_.accumulate,
                                options_.short_ranks};
      position_.sample = FirstOfRound(start_, position_.step, step, options_.rank);
    }
    return true;
  }

 private:
  void Draw(std::int64_t k, std::int64_t place) {
    const auto label = static_cast<std::int32_t>(k % options_.classes);
    const std::int64_t size = options_.size;
    Random random(1, RandomPurpose::kSynthetic, static_cast<std::uint64_t>(k));
    auto pixel = pixels_.begin() + place * size * size * 3;
    for (std::int64_t y = 0; y < size; ++y) {
      for (std::int64_t x = 0; x < size; ++x) {
        const double phase = (label % 2 == 0 ? x : y) * (label < 2 ? 0.4 : 1.2);
        for (int c = 0; c < 3; ++c) {
          *pixel++ = static_cast<std::uint8_t>(127 + 80 * std::sin(phase) + random.Below(40));
        }
      }
    }
    labels_[static_cast<std::size_t>(place)] = label;
    mirror_[static_cast<std::size_t>(place)] = k / options_.classes % 2 == 0 ? 0 : 1;
  }

  const GeneratedSourceOptions options_;
  Position start_;
  Position position_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> mirror_;
  std::vector<std::int32_t> labels_;
};

}  // namespace trainer
