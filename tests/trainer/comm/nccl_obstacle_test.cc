// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/nccl_obstacle.h"

#include "tests/support/test.h"
#include "tests/trainer/comm/nccl_emulator/emulated_nccl.h"
#include "tests/trainer/train/thread_ranks.h"

namespace trainer {
namespace {

constexpr char kOne[] = "0000:1B:00.0";
constexpr char kOther[] = "0000:1C:00.0";

NcclRank On(const std::string& gpu, std::optional<std::string> multi_rank = {},
            const std::string& version = "2.30.7") {
  return {gpu, std::move(multi_rank), [version] { return version; }};
}

// What NcclObstacle returns on each rank, of which rank r has ranks[r].
std::vector<std::string> Obstacles(const std::vector<NcclRank>& ranks) {
  std::vector<std::string> obstacles(ranks.size());
  RunRanks(static_cast<int>(ranks.size()), [&](Communicator& host) {
    const auto rank = static_cast<std::size_t>(host.rank());
    obstacles[rank] = NcclObstacle(host, ranks[rank]);
  });
  return obstacles;
}

class NcclObstacleTest : public testing::Test {
 protected:
  NcclObstacleTest() { nccl_emulator::SetProblem(""); }
  ~NcclObstacleTest() override { nccl_emulator::SetProblem(""); }
};

TEST_F(NcclObstacleTest, IsNoneWhereEachRankHasAGpuOfItsOwn) {
  EXPECT_THAT(Obstacles({On(kOne), On(kOther, "0", "2.18.1"), On("0000:3D:00.0")}), Each(""));
}

TEST_F(NcclObstacleTest, NamesARankWithoutAGpu) {
  EXPECT_THAT(Obstacles({On(kOne), On("")}), Each("rank 1: computes without a GPU"));
}

TEST_F(NcclObstacleTest, SaysWhatTheLibraryLacks) {
  nccl_emulator::SetProblem("NCCL 2.16.5 is older than 2.18");
  EXPECT_THAT(Obstacles({On(kOne), On(kOther)}), Each("rank 0: NCCL 2.16.5 is older than 2.18"));
  // Also where ranks share a GPU: an older library comes first.
  EXPECT_THAT(Obstacles({On(kOne, "1"), On(kOne, "1")}),
              Each("rank 0: NCCL 2.16.5 is older than 2.18"));
}

TEST_F(NcclObstacleTest, IsNoneWhereAllRanksMayShareAGpu) {
  EXPECT_THAT(Obstacles({On(kOne, "1"), On(kOne, "1")}), Each(""));
  EXPECT_THAT(Obstacles({On(kOne, "1"), On(kOther, "1"), On(kOne, "1"), On(kOther, "1")}),
              Each(""));
}

TEST_F(NcclObstacleTest, NamesRanksThatShareAGpuAndWhatLetsThem) {
  EXPECT_THAT(Obstacles({On(kOne), On(kOther), On(kOne)}),
              Each("ranks 0 and 2 share a GPU; NCCL_MULTI_RANK_GPU_ENABLE=1 lets them"));
  EXPECT_THAT(Obstacles({On(kOne, {}, "2.28.9"), On(kOne, {}, "2.28.9")}),
              Each("ranks 0 and 1 share a GPU; NCCL_MULTI_RANK_GPU_ENABLE=1 lets them, from NCCL "
                   "2.30 on; this is 2.28.9"));
  EXPECT_THAT(Obstacles({On(kOne, "1", "2.28.9"), On(kOne, "1", "2.28.9")}),
              Each("ranks 0 and 1 share a GPU; NCCL lets them from 2.30 on; this is 2.28.9"));
}

// Each rank's NCCL looks at all ranks.
TEST_F(NcclObstacleTest, NamesTheOneRankThatKeepsOthersFromSharing) {
  EXPECT_THAT(Obstacles({On(kOne, "1"), On(kOne, "1"), On(kOther)}),
              Each("ranks 0 and 1 share a GPU; rank 2: NCCL_MULTI_RANK_GPU_ENABLE=1 lets them"));
  EXPECT_THAT(
      Obstacles({On(kOne, "1"), On(kOne, "1", "2.29.1")}),
      Each("ranks 0 and 1 share a GPU; rank 1: NCCL lets them from 2.30 on; this is 2.29.1"));
}

TEST(SharingObstacle, ComparesVersionsAsNumbers) {
  for (const char* version : {"2.30.0", "2.30.7", "2.100.1", "3.0.0", "10.1.0"}) {
    EXPECT_EQ(SharingObstacle("1", version), "") << version;
  }
  for (const char* version : {"2.3.0", "2.9.9", "2.29.9", "1.99.0", "2", ""}) {
    EXPECT_NE(SharingObstacle("1", version), "") << version;
  }
}

TEST(SharingObstacle, ReadsTheVariableAsNcclDoes) {
  for (const char* on : {"1", "2", "-1", "0x1", "01", " 1", "1 rank", "0xff"}) {
    EXPECT_EQ(SharingObstacle(on, "2.30.7"), "") << on;
  }
  for (const char* off : {"0", "", "00", "0x0", "yes", "true", "99999999999999999999"}) {
    EXPECT_EQ(SharingObstacle(off, "2.30.7"), "NCCL_MULTI_RANK_GPU_ENABLE=1 lets them") << off;
  }
}

}  // namespace
}  // namespace trainer
