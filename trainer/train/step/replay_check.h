// SPDX-License-Identifier: Apache-2.0
//
// Whether this rank's device computes the same twice (--replay_check): silent data corruption of a
// GPU changes its gradients, the all-reduce adds them to those of all ranks alike, and no
// comparison of the ranks' weights ever sees it.
//
// In a step that is replayed each batch runs forward and backward twice, from the same weights,
// running statistics and images, before anything is summed over batches or ranks.  What both passes
// leave is compared: the gradients as blocks write them, and the running statistics.  They are the
// same to the bit where the back end says that it repeats itself (Backend::repeat_error is 0), else
// as near as it says, each parameter by itself.  The second pass is the one that counts, so that a
// step that was replayed has the same result as one that was not.
//
// Not seen: a fault that repeats itself exactly, weights or images that were wrong before the first
// pass, and a fault of the update or of the all-reduce (the last two make ranks differ:
// --paranoid).
//
// Used from the thread of the training loop.  After the constructor nothing is allocated until
// something differs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/network.h"

namespace trainer {

// How the values of one tensor differ between two passes.  Values that are NaN or infinite in both
// are the same in norms.
struct PassDifference {
  std::size_t values = 0;  // that have other bits
  double largest = 0;      // of |first - second|; infinite where one is NaN or infinite
  double relative = 0;     // norm of the difference to the larger of the norms; likewise
  bool is_finite = true;   // all values that were looked at
};

// Of `count` elements of fp32, fp16 or bf16 in host memory.  Pure.
PassDifference ComparePasses(const std::byte* first, const std::byte* second, std::size_t count,
                             DType dtype);

// What two passes over a batch have left that differs.
struct ReplayDifference {
  std::string name;           // the first that was computed of those that differ:
  bool is_statistic = false;  // "layer1.0.bn2.running_mean"; else the gradient of a parameter
  std::size_t count = 0;      // of its values
  PassDifference found;
  int others = 0;  // parameters and statistics that differ as well
};

class ReplayCheck {
 public:
  // Both outlive it.  Takes BytesFor of host memory, and where the back end has memory of its own
  // there as much as the running statistics.
  ReplayCheck(Backend& backend, const Network& network);

  // One copy of the gradients and of the running statistics, and on a device the largest tensor
  // among them, which comes to the host to be compared.
  static std::size_t BytesFor(const ParameterLayout& layout, bool is_host);

  // The calls for a batch, in this order: before its first pass is queued; after that, which sets
  // the running statistics back; after the second, which is waited for.
  void Begin(Stream& stream);
  void Keep(Stream& stream);
  std::optional<ReplayDifference> Compare(Stream& stream);

 private:
  struct Piece {
    const Parameter* parameter = nullptr;
    const std::byte* data = nullptr;  // of the back end
    DType dtype = DType::kFloat32;
    std::size_t offset = 0;  // into first_, bytes
    std::size_t bytes() const { return parameter->count * SizeOf(dtype); }
  };

  Backend& backend_;
  const Network& network_;
  // In the order in which a pass computes them: statistics from the first layer on, gradients from
  // the last one on.
  std::vector<Piece> pieces_;
  Buffer first_;              // of pieces_, of the first pass; on the host
  Buffer staging_;            // on the host; empty where the second pass is there
  Buffer statistics_before_;  // where the back end computes
};

// Of this rank, for messages.
struct ReplayRank {
  std::string host;                     // or ""
  std::function<std::string()> device;  // what it computes with, as its owner finds it; may be null
};

// The error of the rank that has `own`.  `differing` of `ranks` ranks have such a thing.  Pure.
std::string DescribeReplayDifference(std::int64_t step, const ReplayDifference& own,
                                     const std::string& rank_name, const std::string& host,
                                     const std::string& device, int differing, int ranks);

// Collective, after both passes of all batches of `step` and before anything of it is summed.
// `own`: what differs on this rank.  Throws RankFault(EX_OSERR) on every rank where anything
// differs on one.
void RequireSamePasses(std::int64_t step, const std::optional<ReplayDifference>& own,
                       const ReplayRank& rank, Communicator& communicator);

}  // namespace trainer
