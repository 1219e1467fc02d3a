// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "launcher/launch/master_address.h"

namespace launcher {
namespace {

TEST(MasterPort, IsAboveTheEphemeralRangeAndDependsOnTheSeed) {
  for (const unsigned long seed : {0UL, 4535UL, 4536UL, 123456789UL}) {
    EXPECT_GE(ChooseMasterPort(seed), 61000);
    EXPECT_LE(ChooseMasterPort(seed), 65535);
  }
  EXPECT_NE(ChooseMasterPort(1000), ChooseMasterPort(2000));
}

}  // namespace
}  // namespace launcher
