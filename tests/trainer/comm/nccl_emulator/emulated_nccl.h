// SPDX-License-Identifier: Apache-2.0
//
// NCCL for ranks that are threads of one process, on memory that all of them see: in the place of
// trainer/comm/nccl_library.cc.  As the real one with non-blocking communicators:
//   * Calls return before they are done; ncclCommGetAsyncError says when.  A communicator is not
//     used before that; a sum is on its stream only then.
//   * A sum waits on its stream until all ranks have come to theirs, or its own communicator is
//     aborted.  ncclCommAbort returns when no sum of it waits any more.
//   * A rank that is gone without ncclCommFinalize is ncclRemoteError for the others.
//   * A communicator that was asked for as a blocking one is refused.
// Sums are taken in the order of the ranks.
//
// Threads: any; the settings before the ranks start.

#pragma once

#include <functional>
#include <string>

#include "trainer/comm/nccl_library.h"

namespace nccl_emulator {

// How work gets on a stream; nothing given: it is done before the call returns.
void QueueBy(std::function<void(cudaStream_t, std::function<void()>)> queue);
// What communicators that start from now on come to, and what NCCL says of it; ncclSuccess: they
// start.
void StartWith(ncclResult_t result, const std::string& last_error);
// Why the library cannot be used.
void SetProblem(const std::string& problem);

// How many communicators have come to which end since this was last asked.
struct Ends {
  int destroyed = 0;
  int aborted = 0;
  bool operator==(const Ends&) const = default;
};
Ends TakeEnds();
// Of the last communicator that was started; INT_MIN: not given.
int LastMaxCtas();

}  // namespace nccl_emulator
