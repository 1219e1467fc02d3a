// SPDX-License-Identifier: Apache-2.0
//
// Where batches come from: records on disk, or made up.  What a batch holds is a pure function of
// (seed, position, rank): in the step that begins at sample number k of the run, place p of a rank
// is sample number k + rank * batch + p, whatever the number of ranks; of several batches in a step
// each takes the images that follow those of all ranks' batches before.  So 1 rank with a batch of
// 2B and 2 ranks with B see the same images, augmented alike, and a run goes on where it stopped,
// with any number of ranks, by naming its position.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/consistency_item.h"
#include "trainer/core/tensor.h"
#include "trainer/data/files/record_cache.h"
#include "trainer/data/files/scan_cache.h"
#include "trainer/data/shard_sampler.h"

namespace trainer {

// The memory of one batch of a source, in one piece: a device may want it to be memory that it
// reads at full speed (Backend::AllocateHost).
class BatchMemory {
 public:
  BatchMemory(std::size_t images, std::size_t image_bytes, const AllocateMemory& allocate)
      : images_(images),
        pixel_bytes_(images * image_bytes),
        memory_(allocate(LabelsAt() + images * (sizeof(std::int32_t) + 1))) {}

  std::span<std::uint8_t> pixels() const { return {At<std::uint8_t>(0), pixel_bytes_}; }
  std::span<std::int32_t> labels() const { return {At<std::int32_t>(LabelsAt()), images_}; }
  std::span<std::uint8_t> mirror() const {
    return {At<std::uint8_t>(LabelsAt() + labels().size_bytes()), images_};
  }

 private:
  std::size_t LabelsAt() const { return (pixel_bytes_ + kAlignment - 1) / kAlignment * kAlignment; }
  template <typename T>
  T* At(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_.data() + offset);
  }

  static constexpr std::size_t kAlignment = 64;
  std::size_t images_;
  std::size_t pixel_bytes_;
  Buffer memory_;
};

// Host memory of one batch, owned by the source until the next call of Next.
struct HostBatch {
  std::span<const std::uint8_t> pixels;  // batch x height x width x 3, RGB
  std::span<const std::uint8_t> mirror;  // batch: 1 where the image is to be flipped left to right
  std::span<const std::int32_t> labels;  // batch, [0, classes)
  std::int64_t valid =
      0;  // samples that count, the first of the batch; fewer than batch only in evaluation
  std::int64_t step = 0;    // global step this batch belongs to
  std::int64_t sample = 0;  // in training the number of its first image in the run, as above
};

class DataLoader {
 public:
  virtual ~DataLoader() = default;
  // Images of the whole set, all ranks together.
  virtual std::int64_t samples() const = 0;
  // What it takes them from, wherever that lies: the same on all ranks of a run.
  virtual std::vector<ConsistencyItem> items() const { return {}; }
  // What it took to find the images, on this rank.
  virtual ScanCost scan_cost() const { return {}; }
  // What is kept of its records on this node, if anything is to be.
  virtual std::optional<RecordCacheUse> record_cache() const { return std::nullopt; }
  // The highest label in its files, as far as some records tell that are spread over all of them;
  // nothing where it has no files, or none of these can be read.  Reads them.
  virtual std::optional<std::int64_t> SampleHighestLabel() const { return std::nullopt; }
  // One line that whoever trains from it ought to know; "" if there is nothing to say.
  virtual std::string note() const { return ""; }
  // The next batch returned by Next() is that of the step that begins at `position`, later ones
  // follow without a gap.  A source begins at {}; so do all passes over an evaluation source.
  virtual void Seek(const Position& position) = 0;
  // Waits for the next batch.  Training sources never end.  An evaluation source gives every rank
  // the same number of batches, (the last ones may have valid == 0), counts each image once over
  // all ranks, then returns false. Throws Error(EX_DATAERR) that names file and offset of a bad
  // record.
  virtual bool Next(HostBatch& batch) = 0;
};

// Made-up batches for benchmarks and for runs without a data directory: pixels from a truncated
// normal distribution of mean 127 and standard deviation 60, rounded, labels uniform over the
// classes, no mirroring (NVIDIA's DeepLearningExamples, TensorFlow ConvNets, utils/data_utils.py).
//
// As there, one fixed batch per rank is made when the source is made, and every step gives that
// batch: the source costs nothing.  Sample p of rank r is drawn from Random(seed, kSynthetic, r *
// batch_size + p), so two ranks with batch B see what one rank with 2B sees.

struct SyntheticDataLoaderOptions {
  std::int64_t batch_size = 32;  // images of a batch
  // How many batches ranks take in a step of training (GlobalBatch).
  std::int64_t accumulate = 1;
  int short_ranks = 0;
  int image_size = 224;  // pixels, height and width
  int classes = 1000;
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 1;  // the same on all ranks
  bool training = true;    // endless; false: ends after `samples` images of all ranks together
  std::int64_t samples = 1281167;  // what samples() returns: those of ImageNet's training set
  AllocateMemory allocate = AllocateOrdinaryMemory;  // of the batch
};

std::unique_ptr<DataLoader> MakeSyntheticDataLoader(const SyntheticDataLoaderOptions& options);

}  // namespace trainer
