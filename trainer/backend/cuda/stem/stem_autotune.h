// SPDX-License-Identifier: Apache-2.0
//
// Autotuning of the stem: with the result of its convolution in memory, or with its recomputation
// in the passes of stem_passes.h.

#pragma once

#include <cstdint>

#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/backend/cuda/stem/stem_passes.h"
#include "trainer/backend/ops.h"

namespace trainer {

enum class StemVariant : std::uint8_t { kRecompute, kStored };

// How far the results of what is computed again are from those of `convolution` and the passes
// behind it, forward and backward, of noise: the most that one of them differs, relative to its
// root of the mean of squares; not a number if one has none.  For construction only: it allocates
// and waits.  `convolution`: over blocks of pixels, to size.images.  REQUIRES: HasStemPasses(size).
double StemVariantError(Convolution& convolution, const StemSize& size);
// What may be rounding.
double AllowedStemDifference(DType dtype);

// As the autotuner knows it; else both are timed, forward and backward, as in training.  What is
// computed again is only timed if StemVariantError allows it.  For construction only, as FastestOf.
// REQUIRES: as there.
StemVariant FasterStemVariant(Autotuner& autotuner, Convolution& convolution, const StemSize& size);

}  // namespace trainer
