// SPDX-License-Identifier: Apache-2.0

#include <numeric>

#include "tests/support/test.h"
#include "trainer/backend/registry.h"
#include "trainer/model/network.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/state/snapshot.h"

namespace trainer {
namespace {

using testing::Each;

using ValuesByName = std::map<std::string, std::vector<float>>;

ValuesByName ValuesIn(std::span<const TensorReader> tensors) {
  ValuesByName values;
  for (const TensorReader& tensor : tensors) {
    const auto* data = static_cast<const float*>(tensor.data);
    values[tensor.name] = {data, data + tensor.shape.elements()};
  }
  return values;
}

ValuesByName ValuesIn(const std::vector<HostTensor>& tensors) {
  ValuesByName values;
  for (const HostTensor& tensor : tensors) values[tensor.name] = tensor.values;
  return values;
}

CheckpointState StateOfRanks(int ranks, std::int64_t step) {
  CheckpointState state;
  state.world_size = ranks;
  state.step = step;
  return state;
}

// A network with numbers in all of its parts, of two seeds that can be told from each other.
class NetworkToCopy {
 public:
  explicit NetworkToCopy(const std::string& backend)
      : backend_(MakeBackend(backend, {.threads = 1})),
        network_(*backend_, {"resnet_tiny", 2, 32, 32, 4, 0}),
        stream_(backend_->MakeStream()) {
    Fill(1);
  }

  void Fill(std::uint64_t seed) {
    Initialize(network_, {seed, WeightInit::kFanOut, false}, *stream_);
    for (const Parameter& parameter : network_.parameters()) {
      if (parameter.spec.statistic) continue;
      std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
      std::iota(values.begin(), values.end(), static_cast<float>(seed));
      network_.Import(Network::Part::kMomentum, parameter, values, *stream_);
    }
  }

  Backend& backend() { return *backend_; }
  Network& network() { return network_; }
  Stream& stream() { return *stream_; }
  std::vector<float> statistics() { return ExportStatistics(network_, *stream_); }
  ValuesByName part(Network::Part part) {
    return ValuesIn(ExportPart(network_, part, "", *stream_));
  }

 private:
  std::unique_ptr<Backend> backend_;
  Network network_;
  std::unique_ptr<Stream> stream_;
};

TEST(SnapshotCopy, HasTheBitsOfTheStateOnEveryBackEndWhateverTheNextStepDoes) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    NetworkToCopy source(backend);
    SnapshotCopy copy(source.backend(), source.network());
    const ValuesByName values = source.part(Network::Part::kValue);
    const ValuesByName momentum = source.part(Network::Part::kMomentum);
    copy.Take(source.network(), StateOfRanks(1, 7), {source.statistics(), {}}, source.stream());
    source.Fill(2);
    EXPECT_EQ(copy.state().step, 7);
    EXPECT_EQ(ValuesIn(copy.model()), values);
    EXPECT_EQ(ValuesIn(copy.optimizer()), momentum);

    copy.Take(source.network(), StateOfRanks(1, 8), {source.statistics(), {}}, source.stream());
    EXPECT_EQ(ValuesIn(copy.model()), source.part(Network::Part::kValue));
    EXPECT_NE(ValuesIn(copy.model()), values);
  }
}

TEST(SnapshotCopy, HasTheMeanOfTheStatisticsAndThoseOfEachRank) {
  NetworkToCopy source("reference");
  SnapshotCopy copy(source.backend(), source.network());
  const std::size_t count = source.statistics().size();
  std::vector<float> rows(count, 2);
  rows.resize(2 * count, 4);
  for (int i = 0; i < 2; ++i) {
    copy.Take(source.network(), StateOfRanks(2, i), {rows, {}}, source.stream());
    EXPECT_THAT(ValuesIn(copy.model()).at("bn1.running_mean"), Each(3.0F));
    EXPECT_EQ(ValuesIn(copy.model()).at("conv1.weight"),
              source.part(Network::Part::kValue).at("conv1.weight"));
    const TensorReader& all = copy.optimizer().back();
    EXPECT_EQ(all.name, "rank_statistics");
    EXPECT_EQ(all.shape, Shape({2, static_cast<std::int64_t>(count)}));
    EXPECT_EQ(ValuesIn(copy.optimizer()).at("rank_statistics"), rows);
    EXPECT_EQ(copy.optimizer().size(), source.part(Network::Part::kMomentum).size() + 1);
  }
}

}  // namespace
}  // namespace trainer
