// SPDX-License-Identifier: Apache-2.0
//
// Autotuning of the stem: with the result of its convolution in memory, or with its recomputation
// in the passes of stem_passes.h.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "trainer/backend/cuda/stem/stem_passes.h"
#include "trainer/backend/ops.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

enum class StemVariant { kStored, kRecompute };

// The text by which PlanCache has it.
std::string PlanOf(StemVariant variant);
std::optional<StemVariant> ParseStemVariant(const std::string& plan);

// How far the results of what is computed again are from those of `convolution` and the passes
// behind it, forward and backward, of noise: the most that one of them differs, relative to its
// root of the mean of squares; not a number if one has none.  For construction only: it allocates
// and waits.  `convolution`: over blocks of pixels, to size.images.  REQUIRES: HasStemPasses(size).
double StemVariantError(Convolution& convolution, const StemSize& size);
// What may be rounding.
double AllowedStemDifference(DType dtype);

class StemAutotuner {
 public:
  explicit StemAutotuner(DevicePlanCache plans) : plans_(std::move(plans)) {}

  // As PlanCache has it; else both race once for each size, forward and backward, as in training.
  // What is computed again is only raced if StemVariantError allows it.  For construction only, as
  // FastestOf.  REQUIRES: as there.
  StemVariant Choose(Convolution& convolution, const StemSize& size);

 private:
  const DevicePlanCache plans_;
  std::map<std::string, StemVariant> known_;
};

}  // namespace trainer
