// SPDX-License-Identifier: Apache-2.0
//
// The stem in fewer and faster passes than the default one: its convolution over blocks of pixels,
// batch norm, ReLU and max pool as one (stem_kernels.h).  What the batch norm gives is nowhere in
// memory.

#pragma once

#include <memory>

#include "trainer/backend/backend.h"

namespace trainer {

// `backend` is the cuda back end, and outlives the stem.
std::unique_ptr<Stem> MakeCudaStem(Backend& backend, const StemSpec& spec);

}  // namespace trainer
