// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/memory_room.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"

namespace trainer {
namespace {

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

// What one rank finds.
struct FreeMemory {
  std::string gpu;
  std::size_t free_bytes = 0;
};

// What ShareGpus makes of it on each rank.
std::vector<MemoryRoom> Share(const std::vector<FreeMemory>& found) {
  std::vector<MemoryRoom> rooms(found.size());
  RunRanks(static_cast<int>(found.size()), [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const auto& [gpu, free_bytes] = found[rank];
    MemoryRoom own;
    own.bytes = {free_bytes, 1000 + rank};
    own.is_host = gpu.empty();
    rooms[rank] = ShareGpus(own, gpu, communicator);
  });
  for (std::size_t rank = 0; rank < rooms.size(); ++rank) {
    EXPECT_EQ(rooms[rank].bytes.host, 1000 + rank);
    EXPECT_EQ(rooms[rank].is_host, found[rank].gpu.empty());
    EXPECT_EQ(rooms[rank].sharing, rooms[0].sharing);
  }
  return rooms;
}

TEST(ShareGpus, ARankWithAGpuOfItsOwnHasAllOfIt) {
  const auto rooms = Share({{"1B", 80'000'000'001}, {"1C", kUnknown}, {"", 0}, {"", 0}});
  EXPECT_EQ(rooms[0].bytes.device, 80'000'000'001U);
  EXPECT_EQ(rooms[1].bytes.device, kUnknown);
  EXPECT_EQ(rooms[2].bytes.device, 0U);
  for (const MemoryRoom& room : rooms) EXPECT_EQ(room.ranks_of_gpu, 1);
  EXPECT_EQ(rooms[0].sharing, "");
}

// The second rank has measured when the first had already taken memory for CUDA itself, the first
// before the second had.
TEST(ShareGpus, TwoRanksHaveHalfOfTheLeastThatOneFound) {
  const auto rooms = Share({{"1B", 77'900'000'000}, {"1B", 77'800'000'000}});
  for (const MemoryRoom& room : rooms) {
    EXPECT_EQ(room.bytes.device, 38'900'000'000U);
    EXPECT_EQ(room.ranks_of_gpu, 2);
  }
  EXPECT_EQ(rooms[0].sharing,
            "2 ranks share each GPU: each plans with 1/2 of what is free, 38.90 GB");
}

TEST(ShareGpus, CountsTheRanksOfEachGpu) {
  const auto even = Share({{"1B", 40'000'000'000},
                           {"1C", 30'000'000'000},
                           {"1B", 40'000'000'000},
                           {"1C", 30'000'000'000}});
  EXPECT_EQ(even[2].bytes.device, 20'000'000'000U);
  EXPECT_EQ(even[3].bytes.device, 15'000'000'000U);
  EXPECT_EQ(even[0].sharing,
            "2 ranks share each GPU: each plans with 1/2 of what is free, 15.00 GB or more");
  const auto uneven = Share({{"1B", 40'000'000'000},
                             {"1C", 16'000'000'000},
                             {"1B", 40'000'000'000},
                             {"1B", 40'000'000'000}});
  EXPECT_EQ(uneven[0].bytes.device, 13'333'333'333U);
  EXPECT_EQ(uneven[0].ranks_of_gpu, 3);
  EXPECT_EQ(uneven[1].bytes.device, 16'000'000'000U);
  EXPECT_EQ(uneven[1].ranks_of_gpu, 1);
  EXPECT_EQ(uneven[0].sharing,
            "up to 3 ranks share a GPU: each plans with its part of what is free, 13.33 GB or "
            "more");
}

TEST(FindMemoryRoom, HasNoMemoryOfADeviceThatIsTheHost) {
  const auto backend = MakeBackend("reference", {});
  const MemoryRoom room = FindMemoryRoom(*backend, {4096, "left on this machine"});
  EXPECT_EQ(room.bytes, (MemoryBytes{0, 4096}));
  EXPECT_EQ(room.host_origin, "left on this machine");
  EXPECT_TRUE(room.is_host);
  EXPECT_EQ(room.ranks_of_gpu, 1);
}

}  // namespace
}  // namespace trainer
