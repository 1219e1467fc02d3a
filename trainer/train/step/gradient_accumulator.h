// SPDX-License-Identifier: Apache-2.0
//
// Adds up the gradients of the batches that one update takes, in fp32.
//
// Backward overwrites the gradients (model/network.h), so what came before has to lie elsewhere.
// Gradients of the compute type have a place in the network's fp32 memory that blocks do not use:
// their sum grows there.  Those that blocks write as fp32 have memory of their own here.
//
// All arguments outlive it.  Allocates in its constructor alone; all work is queued on the stream
// that is passed in.

#pragma once

#include <cstddef>

#include "trainer/backend/backend.h"
#include "trainer/model/network.h"

namespace trainer {

class GradientAccumulator {
 public:
  GradientAccumulator(Backend& backend, const Network& network);

  // Memory of the device that it has of its own.
  static std::size_t BytesFor(const ParameterLayout& layout);

  // A batch has run backward that is not the last: all of its gradients begin the sum, or join it.
  void Keep(bool is_first, Stream& stream);
  // The last batch has those of elements [begin, end): network.gradients().fp32 gets their sum over
  // all batches.  REQUIRES: Keep was called for each batch before.
  void Complete(std::size_t begin, std::size_t end, Stream& stream);

 private:
  const void* OfComputeType(std::size_t begin) const;

  Backend& backend_;
  const FlatGradients gradients_;
  const std::size_t elements_;
  const std::size_t compute_from_;  // no more than elements_
  Buffer kept_;                     // of [0, compute_from_)
};

}  // namespace trainer
