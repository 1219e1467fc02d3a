// SPDX-License-Identifier: Apache-2.0
//
// What a device reaches at most, measured through its back end: the two limits of a roofline.

#pragma once

#include <cstddef>

#include "trainer/backend/backend.h"
#include "trainer/core/profiled_op.h"

namespace trainer {

// Arithmetic: the faster one of two 1x1 convolutions with as many channels as a ResNet has, which
// are products of matrices, in the type that the back end computes in.  Memory: a copy of 256 MiB,
// each byte read once and written once.  Each is the best of some runs.  Takes meanwhile 0.5 GiB of
// the device's memory, of a GPU more than 1 GiB; throws Error(EX_OSERR) if that is not there.
struct PeakSearch {
  double seconds = 0.3;  // of runs, for each; one run at least
  std::size_t copy_bytes = std::size_t{256} << 20;
};
MachinePeaks MeasurePeaks(Backend& backend, const PeakSearch& search = {});

}  // namespace trainer
