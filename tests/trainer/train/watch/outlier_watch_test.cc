// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/watch/outlier_watch.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

// 2 and 2.2 by turns: mean 2.1, standard deviation 0.1.
void Fill(OutlierWatch& watch, int count) {
  for (int i = 0; i < count; ++i) EXPECT_FALSE(watch.Add(i % 2 == 0 ? 2 : 2.2)) << i;
}

TEST(OutlierWatch, FindsWhatIsSixDeviationsAboveTheWindow) {
  OutlierWatch watch(0.1);
  Fill(watch, 128);
  EXPECT_FALSE(watch.Add(2.69));
  OutlierWatch other(0.1);
  Fill(other, 128);
  const auto outlier = other.Add(2.71);
  ASSERT_TRUE(outlier);
  EXPECT_NEAR(outlier->mean, 2.1, 1e-12);
  EXPECT_NEAR(outlier->deviation, 0.1, 1e-12);
}

TEST(OutlierWatch, KnowsNothingBeforeItsWindowIsFull) {
  OutlierWatch watch(0.1);
  Fill(watch, 127);
  EXPECT_FALSE(watch.Add(100));
}

TEST(OutlierWatch, AFallIsNoOutlier) {
  OutlierWatch watch(0.1);
  Fill(watch, 128);
  EXPECT_FALSE(watch.Add(0));
}

TEST(OutlierWatch, NumbersThatHardlyChangeHaveRoom) {
  OutlierWatch watch(0.1);
  for (int i = 0; i < 128; ++i) EXPECT_FALSE(watch.Add(2));
  EXPECT_FALSE(watch.Add(2.19));
  EXPECT_TRUE(watch.Add(3));
}

TEST(OutlierWatch, ANewLevelIsNotToldForEver) {
  OutlierWatch watch(0.1);
  Fill(watch, 128);
  int told = 0;
  for (int i = 0; i < 128; ++i) told += watch.Add(6) ? 1 : 0;
  EXPECT_GE(told, 1);
  EXPECT_LE(told, 5);
}

TEST(OutlierWatch, LeavesOutWhatIsNoNumber) {
  OutlierWatch watch(0.1);
  Fill(watch, 128);
  EXPECT_FALSE(watch.Add(NAN));
  EXPECT_FALSE(watch.Add(INFINITY));
  EXPECT_TRUE(watch.Add(3));
}

}  // namespace
}  // namespace trainer
