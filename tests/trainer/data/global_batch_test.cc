// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/global_batch.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

struct Case {
  std::int64_t images;
  std::int64_t most;
  int ranks;
  std::int64_t batch_size;  // 0: it cannot be split
  std::int64_t accumulate;
  int short_ranks;
};

TEST(SplitImages, IsEvenWhereItCanBeAndElseNearlySo) {
  for (const Case& of : {
           Case{32, 8, 4, 8, 1, 0},           // the ranks divide it
           Case{32, 8, 2, 8, 2, 0},           //
           Case{32, 0, 2, 16, 1, 0},          //
           Case{24, 8, 3, 8, 1, 0},           //
           Case{40, 8, 2, 5, 4, 0},           // not 8: 24 and 16 images are further apart
           Case{32, 8, 3, 4, 3, 1},           // 12, 12, 8: 1.125 of the mean; not 16, 8, 8
           Case{32, 0, 3, 4, 3, 1},           //
           Case{1024, 256, 3, 128, 3, 1},     //
           Case{1024, 64, 12, 32, 3, 4},      //
           Case{1024, 256, 31, 8, 5, 27},     // 40: 1.21 of the mean; of 16 they would be 48
           Case{20, 5, 4, 5, 1, 0},           //
           Case{50, 8, 4, 5, 3, 2},           // 15 is 1.2 of 12.5
           Case{32, 0, 5, 4, 2, 2},           // 8 is 1.25 of 6.4, the most that is taken
           Case{3, 0, 2, 1, 2, 1},            // nothing is better than 2 of 1.5
           Case{74, 16, 2, 2, 19, 1},         // even would be 37 batches of 1
           Case{1, 0, 1, 1, 1, 0},            //
           Case{37, 16, 4, 0, 0, 0},          // in batches of 1 alone, below an eighth of 9
           Case{3, 8, 4, 0, 0, 0},            // fewer images than ranks
           Case{16777213, 1000, 7, 0, 0, 0},  // a prime number
       }) {
    SCOPED_TRACE(testing::Message()
                 << of.images << " by " << of.ranks << " of at most " << of.most);
    const auto split = SplitImages(of.images, of.most, of.ranks);
    ASSERT_EQ(split.has_value(), of.batch_size > 0);
    if (!split) continue;
    EXPECT_EQ(*split, (GlobalBatch{of.batch_size, of.ranks, of.accumulate, of.short_ranks, true}));
    EXPECT_EQ(split->images(), of.images);
  }
}

TEST(SplitImages, KeepsItsPromisesForAnyNumbers) {
  for (std::int64_t images = 1; images <= 200; ++images) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (const std::int64_t most : {0, 1, 3, 8, 50}) {
        const auto split = SplitImages(images, most, ranks);
        if (!split) continue;
        SCOPED_TRACE(testing::Message() << images << " by " << ranks << " of at most " << most);
        EXPECT_EQ(split->images(), images);
        EXPECT_TRUE(most == 0 || split->batch_size <= most);
        EXPECT_GE(split->short_ranks, 0);
        EXPECT_LT(split->short_ranks, ranks);
        EXPECT_GE(split->batches_of(ranks - 1), 1);
        std::int64_t batches = 0;
        for (int rank = 0; rank < ranks; ++rank) batches += split->batches_of(rank);
        EXPECT_EQ(batches, split->batches());
      }
    }
  }
}

TEST(GlobalBatch, IsDescribedByItsSplit) {
  EXPECT_EQ(DescribeSplit({16, 1}), "1 rank x 16");
  EXPECT_EQ(DescribeSplit({16, 2, 4}), "2 ranks x 4 batches x 16");
  EXPECT_EQ(DescribeSplit({4, 3, 3, 1}), "8 batches of 4 over 3 ranks");
}

}  // namespace
}  // namespace trainer
