// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/rank_statistics.h"

#include <algorithm>
#include <iterator>

namespace trainer {

std::vector<float> ExportStatistics(const Network& network, Stream& stream, Network::Part part) {
  std::vector<float> row;
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.spec.statistic) continue;
    const std::vector<float> values = network.Export(part, parameter, stream);
    std::copy(values.begin(), values.end(), std::back_inserter(row));
  }
  return row;
}

void ImportStatistics(Network& network, std::span<const float> row, Stream& stream,
                      Network::Part part) {
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.spec.statistic) continue;
    const auto count = static_cast<std::size_t>(parameter.spec.shape.elements());
    network.Import(part, parameter, row.first(count), stream);
    row = row.subspan(count);
  }
}

std::vector<float> GatherRows(std::span<const float> own, Communicator& communicator) {
  std::vector<float> rows;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    std::vector<float> row(own.begin(), own.end());
    communicator.Broadcast(row.data(), row.size() * sizeof(float), rank);
    std::copy(row.begin(), row.end(), std::back_inserter(rows));
  }
  return rows;
}

std::vector<float> MeanOfRows(std::span<const float> rows, int ranks) {
  const std::size_t count = rows.size() / static_cast<std::size_t>(ranks);
  std::vector<float> mean(count);
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::size_t k = i; k < rows.size(); k += count) sum += rows[k];
    mean[i] = static_cast<float>(sum / ranks);
  }
  return mean;
}

std::vector<float> MeanOverRanks(std::span<const float> own, Communicator& communicator) {
  return MeanOfRows(GatherRows(own, communicator), communicator.size());
}

}  // namespace trainer
