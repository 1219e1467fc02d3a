// SPDX-License-Identifier: Apache-2.0
//
// The gradients of a step: all-reduced while backward runs, and before that added up over its
// micro-batches (gradient accumulation).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/gradient_buckets.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/model/network.h"

namespace trainer {

// Adds up the gradients of the batches that one update takes, in fp32.
//
// Backward overwrites the gradients (model/network.h), so what came before has to lie elsewhere.
// Gradients of the compute type have a place in the network's fp32 memory that blocks do not use:
// their sum grows there.  Those that blocks write as fp32 have memory of their own here.
//
// All arguments outlive it.  Allocates in its constructor alone; all work is queued on the stream
// that is passed in.
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

// Which of the batches of its step one is.
struct BatchPlace {
  bool is_first = true;
  bool is_last = true;
  bool operator<(const BatchPlace& other) const {
    return std::pair(is_first, is_last) < std::pair(other.is_first, other.is_last);
  }
};

// How many batches one update takes.
struct UpdateBatches {
  std::int64_t own = 1;  // of this rank
  std::int64_t all = 0;  // of all ranks; 0: each has as many as this one
};

// The gradients from backward to the update, reduced over all ranks on the way, while backward
// still runs: each bucket of the flat gradient memory (comm/gradient_buckets.h) is started as soon
// as all of it is there.
//
// Gradients of the compute type are added up in fp32, or as they are.  A single rank has nothing to
// add.
//
// Where an update takes several batches, the sum over these comes first, and is reduced once, while
// the last of them runs backward.
//
// For a communicator that sums host memory, gradients of another device go there, bucket by bucket,
// on a stream of their own, and come back all together.  Nothing waits for that while backward is
// being queued: sums begin in Finish, each as soon as its bucket has arrived, while the device is
// still at the buckets after it.
//
// All arguments outlive it.  Used from the thread of the training loop.
class GradientOverlap {
 public:
  // `in_compute_type`: reduce gradients in the type in which blocks write them.  REQUIRES: then the
  // communicator has one rank or reduces_device_memory(), and each rank has one batch.
  GradientOverlap(Backend& backend, Network& network, Communicator& communicator,
                  bool in_compute_type, UpdateBatches batches = {},
                  OptimizerKind optimizer = OptimizerKind::kSgd,
                  const GradientBucketBytes& bucket_bytes = {});

  // The phases of a step, each queued on `stream`: backward of each of its batches, for the last
  // with Ready for each block that is done; Finish; the update of the weights by what is then
  // reduced(), with `parameters` and `sums` as Optimizer::Step has them.  A step whose recording
  // failed can be queued again from backward of its last batch on.
  void Backward(BatchPlace place, Stream& stream);
  // In the place of Backward, for a batch that has run it without: its gradients are queued.
  void Take(BatchPlace place, Stream& stream);
  void Update(const UpdateParameters* parameters, UpdateSums* sums, Stream& stream);

  // The gradients of a batch that is not the last of its update are queued on `stream`.
  void Keep(bool is_first, Stream& stream);
  // Of the last one: the gradients from element `complete_from` on are queued on `producer`: starts
  // what can be started, and on a device waits for none of it.  A backward pass ends with 0.
  void Ready(std::size_t complete_from, Stream& producer);
  // Makes `consumer` wait for all of it.  REQUIRES: Ready(0) was called.
  void Finish(Stream& consumer);

  // What is there after Finish: divided by divisor() it is the mean over ranks and batches.
  const FlatGradients& reduced() const { return reduced_; }
  // What goes to host memory and back in each step; 0 where gradients are reduced where they are.
  std::size_t staged_bytes() const { return staging_.bytes(); }
  std::int64_t divisor() const { return reduction_ == Reduction::kSum ? batches_.all : 1; }

 private:
  // Of elements [begin, end), which are reduced in `type`.
  void PlanBuckets(std::size_t begin, std::size_t end, DType type);
  void Start(std::size_t index, Stream& producer);
  void StartCopy(std::size_t index, Stream& producer);
  void SumStaged();
  void Widen(const GradientBucket& bucket, Stream& producer);

  Backend& backend_;
  Network& network_;
  Communicator& communicator_;
  const UpdateBatches batches_;
  const GradientBucketBytes bucket_bytes_;
  std::optional<GradientAccumulator> sum_;  // of several batches
  Reduction reduction_ = Reduction::kSum;
  FlatGradients reduced_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<GradientBucket> buckets_;  // in the order in which they complete
  std::size_t started_ = 0;              // of buckets_, in this step

  // Where gradients are reduced where they are, all of these are empty.
  Buffer staging_;  // on the host
  std::unique_ptr<Stream> copies_;
  std::unique_ptr<Stream> empty_;  // of work: what it stands for is there
  std::unique_ptr<Event> produced_;
  std::vector<std::unique_ptr<Event>> arrived_;  // of buckets_, in staging_
};

// Gives memory for a network's gradients: the communicator's, where it reduces that faster, else
// the back end's.  Both outlive what is returned.
AllocateMemory GradientMemory(Backend& backend, Communicator& communicator);

// What NCCL needs of a back end.  The few blocks of a sum get a multiprocessor as soon as a block
// of backward ends, instead of after all that backward has queued: what waits for the sum, on every
// rank, is the update.
inline NcclDeps MakeNcclDeps(Backend& backend) {
  return {backend.MakeHighPriorityStream(), backend.MakeEvent(), backend.MakeEvent()};
}

}  // namespace trainer
