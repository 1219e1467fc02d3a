// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_version.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

SlurmVersion Version(int year, int month) { return {year, month}; }

TEST(SlurmVersion, IsReadWithWhateverDistributionsAndVendorsAdd) {
  EXPECT_EQ(ParseSlurmVersion("slurm 22.05.8\n"), Version(22, 5));
  EXPECT_EQ(ParseSlurmVersion("slurm-wlm 24.11.5\n"), Version(24, 11));
  EXPECT_EQ(ParseSlurmVersion("slurm-wlm 20.11.4"), Version(20, 11));
  EXPECT_EQ(ParseSlurmVersion("slurm 23.02.7-bull.1.2"), Version(23, 2));
  EXPECT_EQ(ParseSlurmVersion("slurm 25.05.0-0rc1"), Version(25, 5));
  EXPECT_EQ(ParseSlurmVersion("slurm 24.11"), Version(24, 11));
  EXPECT_EQ(ParseSlurmVersion("srun: warning: 3.4.5\nslurm 21.08.6\n"), Version(21, 8));
}

TEST(SlurmVersion, OfAnyOtherTextIsTheNewest) {
  for (const char* text : {"", "slurm", "slurm x", "slurm 24", "slurm 24.", "slurm 24.x", "22.05.8",
                           "slurm v22.05", "slurm -3.4", "slurm 3.-4", "slurm 24.11rc",
                           "srun: error: no slurm: 24.11.5", "slurm 99999999999.1"}) {
    EXPECT_EQ(ParseSlurmVersion(text), kNewestSlurm) << text;
  }
}

TEST(SlurmVersion, ThePauseIsForThoseThatWereSeenToNeedIt) {
  EXPECT_TRUE(PmixServersNeedPause(Version(20, 11)));
  EXPECT_TRUE(PmixServersNeedPause(Version(22, 5)));
  EXPECT_TRUE(PmixServersNeedPause(Version(24, 5)));  // not tried
  EXPECT_FALSE(PmixServersNeedPause(Version(24, 11)));
  EXPECT_FALSE(PmixServersNeedPause(Version(25, 5)));
  EXPECT_FALSE(PmixServersNeedPause(kNewestSlurm));
}

}  // namespace
}  // namespace launcher
