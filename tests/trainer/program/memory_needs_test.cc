// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/memory_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "trainer/backend/registry.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// The largest that fits, found the long way.
std::int64_t LargestByCounting(const std::function<MemoryBytes(std::int64_t)>& bytes_of,
                               const MemoryBytes& room) {
  std::int64_t batch = 0;
  while (bytes_of(batch + 1).FitInto(room)) ++batch;
  return batch;
}

struct Found {
  std::int64_t batch = 0;
  int plans = 0;
};

Found Find(const std::function<std::optional<MemoryBytes>(std::int64_t)>& bytes_of,
           const MemoryBytes& room, std::int64_t first_guess) {
  Found found;
  found.batch = LargestBatch(
      [&](std::int64_t batch) {
        ++found.plans;
        return bytes_of(batch);
      },
      room, first_guess);
  return found;
}

TEST(LargestBatch, IsExactWhateverIsGuessedFirstAndTakesFewPlans) {
  const auto bytes_of = [](std::int64_t batch) {
    const auto images = static_cast<std::size_t>(batch);
    return MemoryBytes{1000 + 70 * images, 300 + 11 * images};
  };
  for (const MemoryBytes& room :
       {MemoryBytes{10000, kUnlimited}, MemoryBytes{kUnlimited, 10000}, MemoryBytes{10000, 1000},
        MemoryBytes{1070, 311}, MemoryBytes{1069, 5000}, MemoryBytes{999, 5000}}) {
    const std::int64_t expected = LargestByCounting(bytes_of, room);
    for (const std::int64_t guess : {1, 2, 63, 64, 65, 1000, 1000000000}) {
      const Found found = Find(bytes_of, room, guess);
      EXPECT_EQ(found.batch, expected) << room.device << " " << room.host << " " << guess;
      EXPECT_LE(found.plans, 6);
    }
  }
}

// As an arena whose pieces are multiples of 256 bytes, with a piece that comes in with batch 40.
TEST(LargestBatch, IsExactWhereTheNeedsAreNearlyLinear) {
  const auto bytes_of = [](std::int64_t batch) {
    const auto images = static_cast<std::size_t>(batch);
    const std::size_t piece = batch > 40 ? 5000 : 0;
    return MemoryBytes{(images * 333 + 255) / 256 * 256 + piece, 0};
  };
  for (std::size_t room = 1000; room < 60000; room += 777) {
    const std::int64_t expected = LargestByCounting(bytes_of, {room, 0});
    for (const std::int64_t guess : {1, 39, 300}) {
      EXPECT_EQ(Find(bytes_of, {room, 0}, guess).batch, expected) << room << " " << guess;
    }
  }
}

TEST(LargestBatch, FitsWhateverTheNeedsAre) {
  const auto bytes_of = [](std::int64_t batch) {
    return MemoryBytes{static_cast<std::size_t>(batch * batch), 0};
  };
  const Found found = Find(bytes_of, {1000000, 0}, 7);
  EXPECT_LE(found.batch, 1000);
  EXPECT_GE(found.batch, 900);
}

TEST(LargestBatch, PassesOverBatchesThatCannotBePlanned) {
  const auto bytes_of = [](std::int64_t batch) -> std::optional<MemoryBytes> {
    if (batch > 500) return std::nullopt;
    return MemoryBytes{static_cast<std::size_t>(batch) * 10, 0};
  };
  EXPECT_EQ(Find(bytes_of, {1000, 0}, 5000).batch, 100);
  EXPECT_EQ(Find(bytes_of, {1000, 0}, 1).batch, 100);
}

TEST(LargestBatch, IsNoneWhereNotOneImageFits) {
  EXPECT_EQ(Find([](std::int64_t) { return MemoryBytes{2, 0}; }, {1, 0}, 100).batch, 0);
  EXPECT_EQ(Find([](std::int64_t) { return std::nullopt; }, {1, 0}, 100).batch, 0);
}

NetworkPlan PlanOf(std::int64_t batch) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  return PlanNetwork(*backend, {"resnet_tiny", batch, 32, 32, 10, 0});
}

std::size_t HostBytesOf(const std::string& name, const std::vector<MemoryPart>& parts) {
  const auto part = std::ranges::find(parts, name, &MemoryPart::name);
  return part == parts.end() ? kUnlimited : part->bytes.host;
}

TEST(MemoryNeeds, OnTheHostEverythingIsHostMemory) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  const NetworkPlan plan = PlanOf(4);
  const std::vector<MemoryPart> parts = PartsOfMemory(
      plan,
      {.is_host = true, .ranks = 2, .host_batches = 3, .host_records = 700, .host_threads = 5});
  const NetworkBytes network = plan.bytes();
  EXPECT_EQ(Sum(parts).device, 0U);
  EXPECT_EQ(HostBytesOf("weights", parts), network.weights);
  EXPECT_EQ(HostBytesOf("gradients", parts), network.gradients);  // nothing is staged
  EXPECT_EQ(HostBytesOf("activations", parts), network.activations);
  EXPECT_EQ(HostBytesOf("input batches", parts), 3U * 4 * (32 * 32 * 3 + 9) + 700);
  const std::size_t statistics = plan.layout.statistic_elements * 4;
  EXPECT_EQ(HostBytesOf("checkpoint", parts), plan.layout.elements * 8 + 4 * statistics);
}

TEST(MemoryNeeds, AGpuHasTheNetworkAndTwoBatches) {
  const NetworkPlan plan = PlanOf(4);
  const NetworkBytes network = plan.bytes();
  const auto parts = PartsOfMemory(plan, {.is_host = false, .ranks = 1, .host_batches = 3});
  const MemoryBytes sum = Sum(parts);
  EXPECT_GT(sum.device, network.total() + 2 * InputBytes(plan.spec) + 900'000'000);
  EXPECT_EQ(HostBytesOf("gradients", parts), 0U);
  const auto of_two = PartsOfMemory(plan, {.is_host = false, .ranks = 2, .host_batches = 3});
  EXPECT_EQ(HostBytesOf("gradients", of_two), plan.layout.elements * 4);  // staged
}

// The reference computes in fp32: all gradients are written over, so all sums lie elsewhere.
TEST(MemoryNeeds, SumsOfSeveralBatchesAreAmongTheGradients) {
  const NetworkPlan plan = PlanOf(4);
  const auto one = PartsOfMemory(plan, {});
  const auto several = PartsOfMemory(plan, {.accumulate = 2});
  EXPECT_EQ(HostBytesOf("gradients", several) - HostBytesOf("gradients", one),
            plan.layout.elements * 4);
  EXPECT_EQ(Sum(several).host - Sum(one).host, plan.layout.elements * 4);
}

TEST(MemoryNeeds, ACheckpointThatIsGoneBackToIsReadBesideTheCopyOfOne) {
  const NetworkPlan plan = PlanOf(4);
  const std::size_t values = plan.layout.elements * sizeof(float);
  const auto host = [&](const RunMemory& run) { return Sum(PartsOfMemory(plan, run)).host; };
  EXPECT_EQ(host({.goes_back = true}), host({}) + 2 * values);
}

TEST(MemoryNeeds, AveragesAreCountedOnTheDeviceInCheckpointsAndInPlaceOfTheWeights) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  NetworkSpec spec = PlanOf(4).spec;
  const auto without = PartsOfMemory(PlanNetwork(*backend, spec), {.is_host = false});
  spec.keeps_averages = true;
  const NetworkPlan plan = PlanNetwork(*backend, spec);
  const auto with = PartsOfMemory(plan, {.is_host = false});
  const std::size_t values = plan.layout.elements * 4;
  const std::size_t statistics = plan.layout.statistic_elements * 4;
  EXPECT_EQ(Sum(with).device - Sum(without).device, values + statistics);
  EXPECT_EQ(Sum(with).host - Sum(without).host, 2 * values + 4 * statistics);
  EXPECT_EQ(with.size(), without.size() + 1);
}

TEST(MemoryNeeds, AreATableOfGigabytes) {
  const std::vector<MemoryPart> parts = {{"weights", {100'000'000, 0}},
                                         {"activations", {12'345'000'000, 50'000'000}}};
  EXPECT_THAT(
      MemoryTable(parts, {16'000'000'000, kUnlimited}, 300, false),
      ElementsAre(
          "GB for each rank           GPU      host", "  weights                 0.10      0.00",
          "  activations            12.35      0.05", "  total                  12.45      0.05",
          "  available              16.00 not known", "largest batch       300 images in a rank"));
  EXPECT_THAT(MemoryTable({{"weights", {0, 100'000'000}}}, {0, 1'000'000'000}, 3, true),
              ElementsAre("GB for each rank          host",  //
                          "  weights                 0.10",  //
                          "  total                   0.10",  //
                          "  available               1.00",  //
                          "largest batch       3 images in a rank"));
}

}  // namespace
}  // namespace trainer
