// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/trainer/comm/ranks.h"
#include "trainer/comm/factory.h"
#include "trainer/comm/single.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<Fact> kFacts = {{"--seed", "--seed=1"}, {"--lr_init", "--lr_init=0.1"}};

std::vector<Fact> WithSeed(int seed) {
  std::vector<Fact> facts = kFacts;
  facts[0].text = "--seed=" + std::to_string(seed);
  return facts;
}

TEST(Disagreement, TheOddOneIsUnlikeMost) {
  const std::vector<std::uint64_t> ranks = {7, 5, 5, 5};
  EXPECT_EQ(JudgeFingerprints(ranks), (Disagreement{.measure = 1, .odd = 0, .unlike = 1}));
}

TEST(Disagreement, OfTwoRanksTheFirstIsTheMeasure) {
  const std::vector<std::uint64_t> ranks = {9, 2};
  EXPECT_EQ(JudgeFingerprints(ranks), (Disagreement{.measure = 0, .odd = 1, .unlike = 1}));
}

TEST(Disagreement, OfTwoHalvesThatOfTheFirstRankIsTheMeasure) {
  const std::vector<std::uint64_t> ranks = {9, 2, 2, 9};
  EXPECT_EQ(JudgeFingerprints(ranks), (Disagreement{.measure = 0, .odd = 1, .unlike = 2}));
}

TEST(Disagreement, NobodyIsLikeAnother) {
  const std::vector<std::uint64_t> ranks = {3, 2, 1};
  EXPECT_EQ(JudgeFingerprints(ranks), (Disagreement{.measure = 0, .odd = 1, .unlike = 2}));
}

TEST(Difference, IsSaidByWhatEachHas) {
  EXPECT_EQ(DescribeDifference(WithSeed(2), kFacts, "rank 0 on node1"),
            "has --seed=2, but rank 0 on node1 has --seed=1");
}

TEST(Difference, AFactThatOnlyOneHasIsMissingFromTheOther) {
  std::vector<Fact> more = kFacts;
  more.push_back({"train-2", "train-2 of 10 bytes"});
  EXPECT_EQ(DescribeDifference(kFacts, more, "rank 0"),
            "has no train-2, but rank 0 has train-2 of 10 bytes");
  EXPECT_EQ(DescribeDifference(more, kFacts, "rank 0"),
            "has train-2 of 10 bytes, but rank 0 has no train-2");
}

TEST(Difference, TheFirstThreeAreSaidAndTheOthersCounted) {
  std::vector<Fact> own;
  std::vector<Fact> measure;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    own.push_back({name, std::string(name) + "=1"});
    measure.push_back({name, std::string(name) + "=0"});
  }
  EXPECT_EQ(DescribeDifference(own, measure, "rank 0"),
            "has a=1, b=1 and c=1, but rank 0 has a=0, b=0 and c=0; 2 more differ");
}

TEST(Agreement, OneRankAgreesWithItself) {
  const auto alone = MakeSingleCommunicator();
  RequireAgreement(*alone, "node1", kFacts, "");
}

// Whether three ranks, the last of which brings `other`, find that all have the same.
bool AllHaveTheSame(std::uint64_t usual, std::uint64_t other) {
  LocalRanks ranks(3);
  const std::vector<int> codes = ranks.Run([&](const CommOptions& options) {
    const auto communicator = MakeCommunicator(options);
    const bool all = AllHave(options.rank == 2 ? other : usual, *communicator);
    communicator->Barrier();
    if (!all) throw Error(EX_CONFIG, "not all");
  });
  EXPECT_THAT(codes, Each(codes[0])) << "ranks do not think alike";
  return codes[0] == 0;
}

TEST(Agreement, EveryBitOfANumberCounts) {
  constexpr std::uint64_t kNumber = 0x8123456789abcdef;
  EXPECT_TRUE(AllHaveTheSame(kNumber, kNumber));
  for (const int bit : {0, 31, 32, 63}) {
    EXPECT_FALSE(AllHaveTheSame(kNumber, kNumber ^ (std::uint64_t{1} << bit))) << bit;
    EXPECT_FALSE(AllHaveTheSame(kNumber ^ (std::uint64_t{1} << bit), kNumber)) << bit;
  }
}

// Ranks that each compare what `facts` gives them, and add up afterwards.
std::vector<int> Compare(LocalRanks& ranks,
                         const std::function<std::vector<Fact>(int rank)>& facts) {
  return ranks.Run([&](const CommOptions& options) {
    const auto communicator = MakeCommunicator(options);
    const std::string host = "node" + std::to_string(options.rank + 1);
    RequireAgreement(*communicator, host, facts(options.rank), "start them alike");
    double sum = 1;
    communicator->AllReduceSum({&sum, 1});
    EXPECT_EQ(sum, options.size);
  });
}

TEST(Agreement, RanksWithTheSameFactsGoOn) {
  LocalRanks ranks(3);
  EXPECT_THAT(Compare(ranks, [](int) { return kFacts; }), Each(0));
}

TEST(Agreement, TheOddRankSaysWhatItHasAndWhoHasWhat) {
  LocalRanks ranks(3);
  const std::vector<int> codes =
      Compare(ranks, [](int rank) { return WithSeed(rank == 2 ? 5 : 1); });
  EXPECT_THAT(codes, testing::ElementsAre(EX_UNAVAILABLE, EX_UNAVAILABLE, EX_CONFIG));
  EXPECT_EQ(ranks.ErrorOf(2), "has --seed=5, but rank 0 on node1 has --seed=1: start them alike");
  EXPECT_THAT(ranks.ErrorOf(0), StartsWith("rank 2 "));
}

TEST(Agreement, ItMayBeRankZero) {
  LocalRanks ranks(4);
  const std::vector<int> codes =
      Compare(ranks, [](int rank) { return WithSeed(rank == 0 ? 5 : 1); });
  EXPECT_EQ(codes[0], EX_CONFIG);
  EXPECT_THAT(ranks.ErrorOf(0), HasSubstr("has --seed=5, but rank 1 on node2 has --seed=1"));
}

TEST(Agreement, OnlyTheFirstOfSeveralOddRanksSpeaks) {
  LocalRanks ranks(5);
  const std::vector<int> codes = Compare(ranks, [](int rank) { return WithSeed(rank % 2); });
  EXPECT_EQ(codes[1], EX_CONFIG);
  EXPECT_EQ(codes[3], EX_UNAVAILABLE);
  EXPECT_THAT(ranks.ErrorOf(1), HasSubstr("; 2 of 5 ranks are unlike rank 0: start them alike"));
}

// What is alike as one text, and not as facts.
TEST(Agreement, NamesAndTextsAreToldApart) {
  LocalRanks ranks(2);
  const Fact early = {"a", "bc"};
  const Fact late = {"ab", "c"};
  const std::vector<int> codes =
      Compare(ranks, [&](int rank) { return std::vector<Fact>{rank == 0 ? early : late}; });
  EXPECT_EQ(codes[1], EX_CONFIG);
}

}  // namespace
}  // namespace trainer
