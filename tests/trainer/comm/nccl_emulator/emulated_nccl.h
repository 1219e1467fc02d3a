// SPDX-License-Identifier: Apache-2.0
//
// NCCL for ranks that are threads of one process, on memory that all of them see: in the place of
// trainer/comm/nccl_library.cc.  As the real one with non-blocking communicators:
//   * Calls return before they are done; ncclCommGetAsyncError says when.  A communicator is not
//     used before that; a sum is on its stream only then: a thread of the emulator's puts it there,
//     after a pause.  Where that stream records, the thread adds to the recording from when the
//     call is made until the sum is there.
//   * A sum waits on its stream until all ranks have come to theirs, or its own communicator is
//     aborted.  ncclCommAbort returns when no sum of it waits any more.
//   * Whether a sum is of a recording is the same on all ranks, else it fails on all.
//     docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/cudagraph.html
//   * A recording that has sums holds their communicator: neither ncclCommFinalize nor
//     ncclCommAbort is done before all that was recorded is gone.
//   * Memory of ncclMemAlloc is registered before the first sum of a communicator, and neither
//     freed nor left to ncclCommFinalize as long as it is.  What is summed lies in registered
//     memory on all ranks, at the same offset, or on none: stricter than NCCL, which is only slower
//     then.
//   * A rank that is gone without ncclCommFinalize is ncclRemoteError for the others.
//   * A communicator that was asked for as a blocking one is refused.
// Sums are taken in the order of the ranks.
//
// Threads: any; the settings before the ranks start.

#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "trainer/comm/nccl_library.h"

namespace nccl_emulator {

struct Streams {
  // How work gets on a stream; nothing given: it is done at once.
  std::function<void(cudaStream_t, std::function<void()>)> queue = {};
  // Whether a stream records; nothing given: none does.
  std::function<bool(cudaStream_t)> records = {};
  // Says that the calling thread adds to what a stream records, until what it returns is gone.
  std::function<std::shared_ptr<void>(cudaStream_t)> begin_adding = {};
  // Work is done by who queues it: a sum that waits for a rank that is gone ends, since who would
  // abort the communicator is the one that waits.
  bool are_synchronous = false;
  // Memory of the device; nothing given: of the host.
  std::function<void*(std::size_t)> allocate = {};
  std::function<void(void*)> release = {};
};
void UseStreams(Streams streams);
// What communicators that start from now on come to, and what NCCL says of it; ncclSuccess: they
// start.
void StartWith(ncclResult_t result, const std::string& last_error);
// Why the library cannot be used.
void SetProblem(const std::string& problem);

// How many communicators have come to which end since this was last asked.  An abort may be under
// way still: waits for `communicators` of them, for some seconds.
struct Ends {
  int destroyed = 0;
  int aborted = 0;
  bool operator==(const Ends&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Ends& ends) {
    return out << ends.destroyed << " destroyed, " << ends.aborted << " aborted";
  }
};
Ends TakeEnds(int communicators = 0);
// Of the last communicator that was started; INT_MIN: not given.
int LastMaxCtas();
// Whether the library has what came with NCCL 2.19, as it has to begin with.
void HaveRegistration(bool have);
// What ncclCommRegister returns from now on; with a null handle: as with NCCL_LOCAL_REGISTER=0.
void RegisterWith(ncclResult_t result, bool null_handle = false);
// Elements of sums so far that were in registered memory, and in other; counted anew from here on.
struct Summed {
  std::size_t registered = 0;
  std::size_t other = 0;
  bool operator==(const Summed&) const = default;
};
Summed TakeSummed();
// Pieces of memory of ncclMemAlloc that ncclMemFree has not taken back.
int AllocatedPieces();

}  // namespace nccl_emulator
