// SPDX-License-Identifier: Apache-2.0
//
// The stem in fewer and faster passes than the default one: its convolution over blocks of pixels,
// batch norm, ReLU and max pool as one (stem_kernels.h).  What the batch norm gives is nowhere in
// memory; nor is what the convolution gives where it is faster to compute it again
// (stem_passes.h).

#pragma once

#include <memory>

#include "trainer/backend/backend.h"
#include "trainer/backend/cuda/cuda_libraries.h"

namespace trainer {

// `backend` is the cuda back end of these libraries; both outlive the stem.
std::unique_ptr<Stem> MakeCudaStem(Backend& backend, CudaLibraries& libraries,
                                   const StemSpec& spec);

}  // namespace trainer
