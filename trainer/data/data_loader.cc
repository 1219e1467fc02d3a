// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/data_loader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <thread>

#include "trainer/core/error.h"
#include "trainer/core/philox.h"
#include "trainer/core/thread.h"
#include "trainer/data/shard_sampler.h"

namespace trainer {
namespace {

constexpr double kMean = 127;
constexpr double kDeviation = 60;

class SyntheticDataLoader : public DataLoader {
 public:
  explicit SyntheticDataLoader(const SyntheticDataLoaderOptions& options);

  std::int64_t samples() const override { return options_.samples; }
  void Seek(const Position& position) override {
    start_ = position;
    step_ = position.step;
  }
  bool Next(HostBatch& batch) override;

 private:
  void MakeImage(std::int64_t item);

  const SyntheticDataLoaderOptions options_;
  const GlobalBatch global_batch_;
  std::size_t image_bytes_;
  BatchMemory memory_;
  Position start_;
  std::int64_t step_ = 0;
};

SyntheticDataLoader::SyntheticDataLoader(const SyntheticDataLoaderOptions& options)
    : options_(options),
      global_batch_{options.batch_size, options.world_size,
                    options.training ? options.accumulate : 1,
                    options.training ? options.short_ranks : 0},
      image_bytes_(static_cast<std::size_t>(options.image_size) *
                   static_cast<std::size_t>(options.image_size) * 3),
      memory_(static_cast<std::size_t>(options.batch_size), image_bytes_, options.allocate) {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  ParallelFor(threads, options.batch_size, [this](std::int64_t item) { MakeImage(item); });
}

void SyntheticDataLoader::MakeImage(std::int64_t item) {
  const auto place = static_cast<std::size_t>(item);
  Random random(options_.seed, RandomPurpose::kSynthetic,
                static_cast<std::uint64_t>(options_.rank * options_.batch_size + item));
  memory_.labels()[place] =
      static_cast<std::int32_t>(random.Below(static_cast<std::uint32_t>(options_.classes)));
  for (std::uint8_t& value : memory_.pixels().subspan(place * image_bytes_, image_bytes_)) {
    value = static_cast<std::uint8_t>(std::lround(kMean + kDeviation * random.TruncatedNormal()));
  }
}

bool SyntheticDataLoader::Next(HostBatch& batch) {
  if (!options_.training && step_ >= EvaluationSteps(global_batch_, options_.samples)) {
    return false;
  }
  const std::int64_t valid =
      options_.training
          ? options_.batch_size
          : EvaluationRange(step_, global_batch_, options_.rank, options_.samples).valid;
  batch = {.pixels = memory_.pixels(),
           .mirror = memory_.mirror(),
           .labels = memory_.labels(),
           .valid = valid,
           .step = step_,
           .sample = TrainingRange(FirstOfRound(start_, step_, global_batch_, options_.rank),
                                   options_.batch_size, options_.rank)
                         .first_sample};
  ++step_;
  return true;
}

}  // namespace

std::unique_ptr<DataLoader> MakeSyntheticDataLoader(const SyntheticDataLoaderOptions& options) {
  DDL_CHECK(options.batch_size > 0 && options.image_size > 0 && options.classes > 0);
  DDL_CHECK(options.rank >= 0 && options.rank < options.world_size);
  return std::make_unique<SyntheticDataLoader>(options);
}

}  // namespace trainer
