// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/rank_statistics.h"

#include <algorithm>

namespace trainer {

std::vector<float> ExportStatistics(const Network& network, Stream& stream) {
  std::vector<float> row;
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.spec.statistic) continue;
    const std::vector<float> values = network.Export(Network::Part::kValue, parameter, stream);
    row.insert(row.end(), values.begin(), values.end());
  }
  return row;
}

void ImportStatistics(Network& network, std::span<const float> row, Stream& stream) {
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.spec.statistic) continue;
    const auto count = static_cast<std::size_t>(parameter.spec.shape.elements());
    network.Import(Network::Part::kValue, parameter, row.first(count), stream);
    row = row.subspan(count);
  }
}

std::vector<float> GatherRows(std::span<const float> own, Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<float> rows(own.size() * ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::span<float> row = std::span(rows).subspan(rank * own.size(), own.size());
    if (static_cast<int>(rank) == communicator.rank()) {
      std::copy(own.begin(), own.end(), row.begin());
    }
    communicator.Broadcast(row.data(), row.size_bytes(), static_cast<int>(rank));
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
