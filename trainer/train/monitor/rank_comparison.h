// SPDX-License-Identifier: Apache-2.0
//
// Whether all ranks still have the same weights and momentum (--paranoid).  They begin with the
// same bits and make the same updates of the same sums, so a difference is a fault of memory, of a
// GPU, or of what carried a sum, which nothing else would ever tell.  Running statistics are each
// rank's own and not compared.
//
// Where all are the same, this is a checksum on each rank and one reduction of four numbers.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/network.h"

namespace trainer {

class RankComparison {
 public:
  // `host`: of this rank, or "".  All outlive it.  Allocates host memory where the weights are
  // memory of another device.
  RankComparison(Backend& backend, const Network& network, Communicator& communicator,
                 std::string host);

  // Collective; between steps, after `step` of them.  Waits for `stream`.
  // Throws Error(EX_OSERR) on one rank, the lowest of those that are unlike the majority, or rank 0
  // where no majority is alike; that rank is to call Abort.  The others do not come back: they wait
  // for it, and get the Error of a communicator whose rank has ended.
  void Require(std::int64_t step, Stream& stream);

 private:
  std::uint64_t Checksum(Stream& stream);

  Backend& backend_;
  const Network& network_;
  Communicator& communicator_;
  const std::string host_;
  Buffer staging_;  // on the host; empty where the weights are there
};

// What is said of ranks that differ, and by which rank.
struct RankDifference {
  int speaker = 0;
  std::string message;
};

// `checksums` and `hosts` by rank; a host may be "".  Pure.  REQUIRES: the checksums are not all
// the same.
RankDifference DescribeRankDifference(std::int64_t step, std::span<const std::uint64_t> checksums,
                                      std::span<const std::string> hosts);

}  // namespace trainer
