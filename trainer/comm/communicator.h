// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one job, as one of them sees the others.  Every rank makes the same calls in the
// same order. Implementations: single (one rank), shared_memory (one machine, no MPI), mpi, nccl.
//
// Threads: all calls from one thread; work of StartAllReduce may go on in another.
// A rank that leaves by an exception calls Abort, so that no other waits for it.
//
// Where reduces_device_memory(), StartAllReduce and Finish may be called while a back end records
// (backend/backend.h).  Recorded work that has sums holds the communicator: it is destroyed before
// the communicator, and before Abort.  Whether a sum is recorded is the same on all ranks.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/dtype.h"
#include "trainer/core/stream.h"
#include "trainer/core/tensor.h"

namespace trainer {

// What becomes of the ranks' shares of one element.
enum class Reduction : std::uint8_t {
  kSum,
  kMean,  // each share is divided by size() first: no sum of 16-bit shares overflows
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string description() const = 0;  // "mpi, 4 ranks", for the log
  // Whether StartAllReduce takes memory of the device of its stream; else it takes host memory.
  virtual bool reduces_device_memory() const { return false; }
  // Memory of the device, not zeroed, whose contents are reduced faster than those of other memory;
  // none where it makes no difference.  All ranks ask for the same sizes in the same order, before
  // their first StartAllReduce.  Its content is at the same offset on all ranks when it is reduced.
  // May outlive the communicator.  REQUIRES, when it is released: no work is under way that uses
  // it, for which, unlike cudaFree, NCCL does not wait.
  virtual Buffer AllocateReduced(std::size_t /*bytes*/) { return {}; }

  // Starts reducing `count` elements at `data` over all ranks, in place, after the work queued on
  // `producer` so far.  Several may be under way; they complete in the order started.  `data` is
  // not touched by the caller until Finish.  On return the work is on its stream: where that
  // records, no other thread adds to the recording any more.  The result has the same bits on every
  // rank and in every run.  REQUIRES: kSum of fp32, or reduces_device_memory(), where fp16, bf16
  // and kMean are known too.
  virtual void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                              Stream& producer) = 0;
  // Makes `consumer` wait for everything started.  On a CPU: returns when it is done.
  virtual void Finish(Stream& consumer) = 0;
  // Returns when all work queued on `stream` is done, sums that it waits for among it.  Throws
  // Error where `stream.Synchronize()` would wait for ever: for a rank that is gone.
  virtual void Synchronize(Stream& stream) { stream.Synchronize(); }

  // Blocking, for small host values: metrics, decisions.
  virtual void AllReduceSum(std::span<double> values) = 0;
  virtual void AllReduceMax(std::span<double> values) = 0;
  // Blocking; `bytes` of host memory from `root` to all.
  virtual void Broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void Barrier() = 0;
  // Collective and blocking: each rank sends `bytes` of host memory to the next one, the last to
  // the first.  How long it took until those of the one before were here; nothing, on all ranks,
  // where there are no links between them.
  virtual std::optional<double> SecondsFromPrevious(std::size_t /*bytes*/) { return std::nullopt; }

  // Ends the job on all ranks at once with `exit_code`; does not return.
  [[noreturn]] virtual void Abort(int exit_code) = 0;
};

// Letters of a text that GatherTexts takes; what is longer is cut.
inline constexpr std::size_t kGatheredLetters = 128;

// Collective.  Every rank's `text`, in the order of the ranks.
std::vector<std::string> GatherTexts(Communicator& communicator, const std::string& text);

// A world of one: every sum is what it was.
std::unique_ptr<Communicator> MakeSingleCommunicator();

// Which ranks of a job compute on the same GPU.

// Collective.  For each rank the lowest one that computes on the same GPU, often itself; itself for
// a rank that computes without one.  `gpu`: what this rank's machine calls its own, "" without one;
// the same name on two machines is of two GPUs, in two containers of one machine of one.
std::vector<int> FirstRanksOfGpus(Communicator& communicator, const std::string& gpu);

}  // namespace trainer
