// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/visible_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kFour = {"GPU-aaaa", "GPU-bbbb", "GPU-bbcc", "GPU-dddd"};
const std::vector<std::string> kFourUnknown = {"", "", "", ""};

TEST(VisibleGpus, AreNumbersInTheOrderOfTheList) {
  EXPECT_THAT(VisibleGpus("0", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("2,0", kFour), ElementsAre(2, 0));
  EXPECT_THAT(VisibleGpus(" 3 ,\t1 ", kFour), ElementsAre(3, 1));
  EXPECT_THAT(VisibleGpus("1gpu,2x", kFour), ElementsAre(1, 2));
}

TEST(VisibleGpus, AreBeginningsOfUuidsThatFitOne) {
  EXPECT_THAT(VisibleGpus("GPU-bbc,GPU-aaaa", kFour), ElementsAre(2, 0));
  EXPECT_THAT(VisibleGpus("GPU-aaaa,GPU-bb", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("GPU-eeee", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("GPU-aaaa,GPU-bbbb", kFourUnknown), ElementsAre(-1, -1));
  EXPECT_THAT(VisibleGpus("GPU-aaaa", {}), IsEmpty());
}

TEST(VisibleGpus, EndAtTheFirstThatIsNotThere) {
  EXPECT_THAT(VisibleGpus("0,4,1", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("0,2,-1,1", kFour), ElementsAre(0, 2));
  EXPECT_THAT(VisibleGpus("0,,1", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("0,GPU-bbbb", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("GPU-bbbb,0", kFour), ElementsAre(1));
  for (const char* none : {"-1", "", ",", "NoDevFiles", "none", "99999999999"}) {
    EXPECT_THAT(VisibleGpus(none, kFour), IsEmpty()) << none;
  }
  EXPECT_THAT(VisibleGpus("0", {}), IsEmpty());
}

TEST(VisibleGpus, NamedTwiceAreNone) {
  EXPECT_THAT(VisibleGpus("0,1,0", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("0,00", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("GPU-bbb,GPU-bbbb", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("MIG-1,MIG-2,MIG-1", kFour), IsEmpty());
}

TEST(VisibleGpus, AreSlicesOfTheGpuThatIsKnown) {
  EXPECT_THAT(VisibleGpus("MIG-1b4c,MIG-77aa", {"GPU-aaaa"}), ElementsAre(0, 0));
  EXPECT_THAT(VisibleGpus("MIG-1b4c,MIG-77aa", kFour), ElementsAre(-1, -1));
  EXPECT_THAT(VisibleGpus("MIG-GPU-bbcc/1/0,MIG-GPU-bbcc/2/0,MIG-GPU-aaaa/1/0", kFour),
              ElementsAre(2, 2, 0));
  EXPECT_THAT(VisibleGpus("MIG-1b4c,0", kFour), ElementsAre(-1));
  EXPECT_THAT(VisibleGpus("MIG-1b4c", {}), IsEmpty());
  EXPECT_TRUE(HasGpuSlices(" MIG-1b4c"));
  EXPECT_FALSE(HasGpuSlices("0,MIG-1b4c"));
  EXPECT_FALSE(HasGpuSlices(""));
}

}  // namespace
}  // namespace launcher
