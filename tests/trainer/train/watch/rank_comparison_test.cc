// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/watch/rank_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/train/faulty_ranks.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

RankDifference Describe(const std::vector<std::uint64_t>& checksums,
                        const std::vector<std::string>& hosts) {
  return DescribeRankDifference(300, checksums, hosts);
}

TEST(RankComparison, NamesTheRankThatIsUnlikeTheMajority) {
  const RankDifference found = Describe({7, 7, 8, 7}, {"n1", "n1", "n2", "n2"});
  EXPECT_EQ(found.speaker, 2);
  EXPECT_EQ(found.message,
            "after step 300 rank 2 on n2 has other weights or momentum than the 3 ranks that are "
            "alike: a GPU, memory, or what carried a sum fails; no checkpoint has it; give the "
            "same command again without that node (sbatch --exclude=n2)");
}

TEST(RankComparison, NamesSeveralAndTheirNodes) {
  const RankDifference found = Describe({5, 7, 8, 7, 7, 7}, {"n2", "n1", "n3", "n1", "n1", "n1"});
  EXPECT_EQ(found.speaker, 0);
  EXPECT_THAT(found.message,
              AllOf(StartsWith("after step 300 rank 0 on n2 and rank 2 on n3 have other weights"),
                    HasSubstr("without those nodes (sbatch --exclude=n2,n3)")));
}

TEST(RankComparison, NamesEightAndCountsTheOthers) {
  std::vector<std::uint64_t> checksums(21, 7);
  for (std::size_t rank = 0; rank < 10; ++rank) checksums[rank] = rank + 100;
  EXPECT_THAT(Describe(checksums, std::vector<std::string>(21)).message,
              AllOf(HasSubstr("rank 6, rank 7 and 2 others have"), HasSubstr("the 11 ranks"),
                    testing::EndsWith("give the same command again")));
}

TEST(RankComparison, OfTwoNobodyCanTell) {
  const RankDifference found = Describe({7, 8}, {"n1", "n2"});
  EXPECT_EQ(found.speaker, 0);
  EXPECT_THAT(found.message,
              StartsWith("after step 300 rank 1 on n2 has other weights or momentum than rank 0 on "
                         "n1, and without a majority that is alike nobody can tell which are "
                         "right: "));
}

TEST(RankComparison, NorOfTwoHalves) {
  EXPECT_THAT(Describe({7, 7, 8, 8}, {"", "", "", ""}).message,
              HasSubstr("rank 2 and rank 3 have other weights or momentum than rank 0 and rank 1, "
                        "and without a majority"));
}

TrainConfig ParanoidConfig(const TemporaryFolder& folder) {
  TrainConfig config = SmallConfig(folder.path());
  config.checkpoint_every = 0;
  config.paranoid = 2;
  return config;
}

TEST(RankComparison, FindsARankWhoseSumHadAnotherBitOnEveryBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryFolder folder;
    const Fault fault = {.rank = 1, .steps = {2}, .is_own_share = false};
    const auto ends = TrainWith(fault, ParanoidConfig(folder), 3, true, backend);
    EXPECT_THAT(ends[1].message, StartsWith("after step 4 rank 1 on node1 has other weights or "
                                            "momentum than the 2 ranks that are alike"));
    EXPECT_EQ(ends[1].exit_code, EX_OSERR);
    EXPECT_EQ(ends[0].message, "a rank is gone");
    EXPECT_EQ(ends[2].message, "a rank is gone");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "checkpoints"));
  }
}

TEST(RankComparison, ComparesBeforeACheckpointToo) {
  const TemporaryFolder folder;
  TrainConfig config = ParanoidConfig(folder);
  config.paranoid = 1000;
  config.checkpoint_every = 3;
  const Fault fault = {.rank = 0, .steps = {1}, .is_own_share = false};
  const auto ends = TrainWith(fault, config, 3, true);
  EXPECT_THAT(ends[0].message, StartsWith("after step 3 rank 0 on node0 has other weights"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "checkpoints"));
}

TEST(RankComparison, ChangesNothingWhereAllAreAlike) {
  const TemporaryFolder compared;
  const TemporaryFolder plain;
  TrainConfig config = ParanoidConfig(compared);
  config.paranoid = 1;
  for (const FaultyEnd& end : TrainWith({}, config, 3)) EXPECT_EQ(end.message, "");
  TrainWith({}, SmallConfig(plain.path()), 3);
  EXPECT_EQ(TensorsOf(CheckpointFolder(compared.path(), 6) / "model.safetensors"),
            TensorsOf(CheckpointFolder(plain.path(), 6) / "model.safetensors"));
}

TEST(RankComparison, OneRankIsToldThatThereIsNothingToCompare) {
  const TemporaryFolder folder;
  const auto ends = TrainWith({}, ParanoidConfig(folder), 1);
  EXPECT_EQ(ends[0].message, "");
  EXPECT_THAT(ends[0].log, HasSubstr("--paranoid compares ranks: one rank has none"));
}

}  // namespace
}  // namespace trainer
