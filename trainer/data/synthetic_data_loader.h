// SPDX-License-Identifier: Apache-2.0
//
// Made-up batches for benchmarks and for runs without a data directory: pixels from a truncated
// normal distribution of mean 127 and standard deviation 60, rounded, labels uniform over the
// classes, no mirroring (NVIDIA's DeepLearningExamples, TensorFlow ConvNets, utils/data_utils.py).
//
// As there, one fixed batch per rank is made when the source is made, and every step gives that
// batch: the source costs nothing.  Sample p of rank r is drawn from
// Random(seed, kSynthetic, r * batch_size + p), so two ranks with batch B see what one rank with 2B
// sees.

#pragma once

#include <cstdint>
#include <memory>

#include "trainer/core/tensor.h"
#include "trainer/data/data_loader.h"

namespace trainer {

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
