// SPDX-License-Identifier: Apache-2.0
//
// The running statistics of batch norm, which every rank has of its own.  Evaluation and saved
// models use their mean over the ranks; training goes on with each rank's own, so that saving or
// evaluating changes nothing.
//
// A row is the statistics of one rank, in the order of Network::parameters(), without padding.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/model/network.h"

namespace trainer {

// `part`: kValue, or kAverage for their moving averages.
std::vector<float> ExportStatistics(const Network& network, Stream& stream,
                                    Network::Part part = Network::Part::kValue);
void ImportStatistics(Network& network, std::span<const float> row, Stream& stream,
                      Network::Part part = Network::Part::kValue);

// The rows of all ranks, rank 0's first.  Collective: all ranks call it.
std::vector<float> GatherRows(std::span<const float> own, Communicator& communicator);

// Element by element, summed in double in the order of the ranks.
std::vector<float> MeanOfRows(std::span<const float> rows, int ranks);

// The mean over all ranks of `own`.  Collective.
std::vector<float> MeanOverRanks(std::span<const float> own, Communicator& communicator);

}  // namespace trainer
