// SPDX-License-Identifier: Apache-2.0
//
// decoding_rate DATA_DIR WORKERS IMAGES IMAGE_SIZE: the bare loop that a loader can be no faster
// than: images/s of WORKERS threads that check, parse, decode, crop and resize IMAGES records as a
// training with --augmentation=torchvision does, out of memory, each into pixels of its own:
// without files, rings and batches.  Before that, a tenth of the images does not count.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/core/philox.h"
#include "trainer/core/thread.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/shard_sampler.h"
#include "trainer/data/tfrecord_loader.h"

namespace {

constexpr std::uint64_t kSeed = 1;

class BareLoop {
 public:
  BareLoop(const std::string& dir, int workers, int image_size)
      : workers_(workers),
        image_size_(image_size),
        data_(dir, "", trainer::Split::kTrain, workers),
        sampler_(data_.records(), kSeed, /*shuffle=*/true) {
    for (std::int64_t record = 0; record < data_.records(); ++record) {
      data_.Fetch(record, records_.emplace_back(data_.SizeOf(record)));
    }
  }

  // Seconds for so many samples, from this one on.
  double Load(std::int64_t first, std::int64_t count) const {
    const auto start = std::chrono::steady_clock::now();
    std::atomic<std::int64_t> next = first;
    trainer::ParallelFor(workers_, workers_, [&](std::int64_t /*worker*/) {
      trainer::SampleLoader loader(
          data_, {.image_size = image_size_, .augmentation = trainer::Augmentation::kTorchvision});
      const auto size = static_cast<std::size_t>(image_size_);
      std::vector<std::uint8_t> pixels(size * size * 3);
      for (std::int64_t sample = next++; sample < first + count; sample = next++) {
        const std::int64_t record = sampler_.RecordOf(sample);
        const trainer::Random random(kSeed, trainer::RandomPurpose::kAugment,
                                     static_cast<std::uint64_t>(sample));
        loader.LoadFetched(record, records_[static_cast<std::size_t>(record)], random, pixels);
      }
    });
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  const int workers_;
  const int image_size_;
  const trainer::DataSet data_;
  const trainer::ShardSampler sampler_;
  std::vector<std::vector<std::uint8_t>> records_;  // as they are in the files
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool is_whole = arguments.size() == 4;
  const int workers = is_whole ? support::WholeNumber<int>(arguments[1]).value_or(0) : 0;
  const std::int64_t images =
      is_whole ? support::WholeNumber<std::int64_t>(arguments[2]).value_or(0) : 0;
  const int image_size = is_whole ? support::WholeNumber<int>(arguments[3]).value_or(0) : 0;
  if (workers < 1 || images < 1 || image_size < 1) {
    std::cerr << "usage: decoding_rate DATA_DIR WORKERS IMAGES IMAGE_SIZE\n";
    return EX_USAGE;
  }
  try {
    const BareLoop loop(arguments[0], workers, image_size);
    const std::int64_t first = images / 10;
    loop.Load(0, first);
    std::cout << static_cast<double>(images) / loop.Load(first, images) << " images/s\n";
    return EX_OK;
  } catch (const trainer::Error& error) {
    std::cerr << "decoding_rate: " << error.what() << '\n';
    return error.exit_code();
  }
}
