// SPDX-License-Identifier: Apache-2.0
//
// Ranks whose GPUs sum gradients among themselves, by NVIDIA's NCCL, beside the computation.
// Everything else goes through the communicator by which the ranks have met, which also carries
// NCCL's unique id.
//
// NCCL never blocks the caller: what it does in threads of its own is waited for with a bound.  One
// of these threads puts a sum on its stream, or into what that records, while StartAllReduce waits:
// CUDA's graphs take nodes from one thread at a time.
//
// NCCL keeps what recorded sums need until the graph is gone, and neither ends nor is aborted
// before.  An abort is left to itself once its order to leave the GPU is given, which it can be
// while a graph is there; a communicator that is destroyed before the graph waits for 30 s in vain.
//
// AllocateReduced is memory of ncclMemAlloc, registered once with ncclCommRegister (NCCL 2.19 and
// later), as NVLink SHARP needs it to add up in the switch without a copy; it is deregistered
// before NCCL ends.  docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/bufferreg.html
//
// Whatever fails, or a rank that is gone, is an Error of one line with NCCL's words
// (EX_UNAVAILABLE; EX_CONFIG where NCCL says that it was asked for something invalid, EX_SOFTWARE
// where CUDA failed), and NCCL is aborted before it is thrown, so that nothing on the GPU waits any
// more.  Whatever is asked of the communicator afterwards throws the same again.  The same happens
// when the communicator is destroyed by an exception.
//
// The bits are the same on every rank; in every run, as far as NCCL chooses the same algorithm: for
// a fixed placement of the ranks and fixed NCCL_* variables.
//
// nccl.h is included in nccl_library.h only; a build without NCCL has nccl_absent.cc in the place
// of nccl_communicator.cc.

#pragma once

#include <memory>
#include <string>

#include "trainer/comm/communicator.h"

namespace trainer {

// Why NCCL cannot be used in this process, the machine's GPUs aside: "this program was built
// without NCCL", "NCCL cannot be loaded: ..."; "" if it can.
std::string NcclProblem();
// "2.28.9".  REQUIRES: NcclProblem() says nothing.
std::string NcclVersion();

// Of the GPU of this rank, which is the current device of the calling thread.
struct NcclDeps {
  std::unique_ptr<Stream> stream;  // for NCCL alone
  std::unique_ptr<Event> produced;
  std::unique_ptr<Event> summed;
};

struct NcclOptions {
  double start_seconds = 120;   // how long the ranks wait for each other to start NCCL
  double stall_seconds = 1800;  // and for each other's share of a sum
  // Thread blocks that a sum may take at most, each of a multiprocessor: what is left is for the
  // computation beside it.  0: NCCL's choice.
  int max_ctas = 0;
};

// Collective.  `host` outlives it.  REQUIRES: NcclObstacle knows of none.
std::unique_ptr<Communicator> MakeNcclCommunicator(Communicator& host, NcclDeps deps,
                                                   const NcclOptions& options);

}  // namespace trainer
