// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/comm/conformance.h"

#include <cstring>
#include <numeric>

#include "tests/support/test.h"
#include "trainer/core/philox.h"

namespace trainer {
namespace {

// Element `i` of rank `rank`: integers in [-50, 50].
float Term(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101) - 50;
}

std::vector<float> Terms(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = Term(rank, i);
  return values;
}

void ExpectSum(const std::vector<float>& values, int size) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += Term(rank, i);
    ASSERT_EQ(values[i], sum) << "element " << i << " of " << values.size();
  }
}

// As a broadcast of rank 0's bytes shows.
void ExpectSameOnAllRanks(Communicator& comm, const std::vector<float>& values) {
  std::vector<float> of_rank_0 = values;
  comm.Broadcast(of_rank_0.data(), of_rank_0.size() * sizeof(float), 0);
  EXPECT_EQ(std::memcmp(of_rank_0.data(), values.data(), values.size() * sizeof(float)), 0);
}

void ExpectExactSums(Communicator& comm, Stream& stream) {
  for (const std::size_t count : {0UL, 1UL, 2UL, 3UL, 1000UL, 524288UL, 524289UL, 1500001UL}) {
    std::vector<float> values = Terms(comm.rank(), count);
    comm.StartAllReduce(values.data(), count, DType::kFloat32, Reduction::kSum, stream);
    comm.Finish(stream);
    comm.Synchronize(stream);
    ExpectSum(values, comm.size());
  }
}

void ExpectQueuedSums(Communicator& comm, Stream& stream) {
  std::vector<std::vector<float>> buckets;
  for (const std::size_t count : {700'000UL, 5UL, 900'000UL, 1UL}) {
    buckets.push_back(Terms(comm.rank(), count));
  }
  for (int round = 0; round < 3; ++round) {
    for (std::vector<float>& bucket : buckets) {
      bucket = Terms(comm.rank(), bucket.size());
      comm.StartAllReduce(bucket.data(), bucket.size(), DType::kFloat32, Reduction::kSum, stream);
    }
    double metric[1] = {1};  // a blocking call behind them keeps the order
    comm.AllReduceSum(metric);
    EXPECT_EQ(metric[0], comm.size());
    comm.Finish(stream);
    comm.Synchronize(stream);
    for (const std::vector<float>& bucket : buckets) ExpectSum(bucket, comm.size());
  }
}

void ExpectEqualBits(Communicator& comm, Stream& stream) {
  const auto sum = [&] {
    Random random(1, RandomPurpose::kSynthetic, static_cast<std::uint64_t>(comm.rank()));
    std::vector<float> values(100'003);
    for (float& value : values) value = static_cast<float>(random.Normal());
    comm.StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum, stream);
    comm.Finish(stream);
    comm.Synchronize(stream);
    return values;
  };
  const std::vector<float> first = sum();
  ExpectSameOnAllRanks(comm, first);
  EXPECT_EQ(sum(), first);
}

void ExpectHostValues(Communicator& comm) {
  const int last = comm.size() - 1;
  double sums[3] = {1.0, static_cast<double>(comm.rank()), 0.5};
  comm.AllReduceSum(sums);
  EXPECT_EQ(sums[0], comm.size());
  EXPECT_EQ(sums[1], comm.size() * last / 2);
  EXPECT_EQ(sums[2], 0.5 * comm.size());
  double maxima[2] = {static_cast<double>(comm.rank()), -static_cast<double>(comm.rank())};
  comm.AllReduceMax(maxima);
  EXPECT_EQ(maxima[0], last);
  EXPECT_EQ(maxima[1], 0);
  comm.Barrier();
}

void ExpectBroadcasts(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    for (const std::size_t bytes : {0UL, 1UL, 7UL, 5'000'000UL}) {
      std::vector<std::uint8_t> values(bytes, static_cast<std::uint8_t>(comm.rank() + 1));
      if (comm.rank() == root) std::iota(values.begin(), values.end(), std::uint8_t{3});
      comm.Broadcast(values.data(), bytes, root);
      for (std::size_t i = 0; i < bytes; ++i) {
        ASSERT_EQ(values[i], static_cast<std::uint8_t>(i + 3)) << i << " from " << root;
      }
    }
  }
}

}  // namespace

void ExpectACommunicator(Communicator& comm, Stream& stream) {
  ExpectExactSums(comm, stream);
  ExpectQueuedSums(comm, stream);
  ExpectEqualBits(comm, stream);
  ExpectHostValues(comm);
  ExpectBroadcasts(comm);
}

}  // namespace trainer
