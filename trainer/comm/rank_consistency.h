// SPDX-License-Identifier: Apache-2.0
//
// Whether the ranks of a run are about to do the same: the same options, program, back end, data.
// Without it a rank that was started with another --seed trains something that nobody asked for,
// and says nothing.
//
// Where all agree, this is one reduction of four numbers, whatever the number of ranks and facts.
// Only where they do not, the ranks' fingerprints and one rank's facts travel as well.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/core/consistency_item.h"

namespace trainer {

// Collective; right for the first call of a communicator, since facts that decide which collective
// calls a rank makes are among those compared.  `host`: of this rank, or "".
//
// Throws Error(EX_CONFIG) on one rank, the odd one, saying which facts of it differ from those of
// which rank, and then `advice`; that rank is to call Abort.  The others do not come back: they
// wait for it, and get the Error of a communicator whose rank has ended.
void CheckRankConsistency(Communicator& communicator, const std::string& host,
                          std::span<const ConsistencyItem> items, const std::string& advice);

// Collective.  Whether all ranks have brought the same number: the same answer on each.
bool AllHave(std::uint64_t number, Communicator& communicator);

// Collective.  Every rank's `number`, in the order of the ranks.
std::vector<std::uint64_t> GatherNumbers(std::uint64_t number, Communicator& communicator);

// "rank 3 on node1", or without `host` "rank 3".  Pure.
std::string NameOfRank(int rank, const std::string& host);

// "a, b and c".  Pure.
std::string Listed(const std::vector<std::string>& items);

// Who is the measure where ranks differ.
struct RankMismatch {
  int measure = 0;  // the lowest of the largest group of ranks that agree; of equal groups, of that
                    // with the lowest rank
  int odd = 0;      // the lowest rank that does not agree with it
  int unlike = 0;   // how many do not

  bool operator==(const RankMismatch&) const = default;
};

// `fingerprints` by rank.  Pure.  REQUIRES: they are not all the same.
RankMismatch CompareFingerprints(std::span<const std::uint64_t> fingerprints);

// The first three facts that differ, and how many more do: "has --seed=2 and no --use_cosine_lr,
// but rank 0 on node1 has --seed=1 and --use_cosine_lr".  A fact that one of them lacks is "no
// NAME".  Pure.
std::string DescribeDifference(std::span<const ConsistencyItem> own,
                               std::span<const ConsistencyItem> measure,
                               const std::string& measure_name);

}  // namespace trainer
