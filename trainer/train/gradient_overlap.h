// SPDX-License-Identifier: Apache-2.0
//
// Sums the gradients over all ranks while backward still runs: each bucket of the flat gradient
// memory (comm/gradient_buckets.h) is started as soon as all of it is there.  The mean is taken by
// the update, as 1/ranks in SgdCall::gradient_scale.
//
// A single rank has nothing to sum.  For a communicator that sums host memory, gradients of another
// device go there and back, bucket by bucket.
//
// All arguments outlive it.  Used from the thread of the training loop.

#pragma once

#include <cstddef>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/gradient_buckets.h"
#include "trainer/model/network.h"

namespace trainer {

class GradientOverlap {
 public:
  GradientOverlap(Backend& backend, const Network& network, Communicator& communicator);

  // The gradients from element `complete_from` on are queued on `producer`: starts what can be
  // started.  A backward pass ends with 0.
  void Ready(std::size_t complete_from, Stream& producer);
  // Makes `consumer` wait for all sums.  REQUIRES: Ready(0) was called.
  void Finish(Stream& consumer);

 private:
  Backend& backend_;
  const Network& network_;
  Communicator& communicator_;
  std::vector<GradientBucket> buckets_;  // in the order in which they complete
  Buffer staging_;           // on the host; empty where the gradients are there themselves
  std::size_t started_ = 0;  // of buckets_, in this step
};

}  // namespace trainer
