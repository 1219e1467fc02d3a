// SPDX-License-Identifier: Apache-2.0

#include "support/counted.h"

#include <gtest/gtest.h>

namespace support {
namespace {

TEST(Counted, KnowsSingularAndPlural) {
  EXPECT_EQ(Counted(0, "rank"), "0 ranks");
  EXPECT_EQ(Counted(1, "rank"), "1 rank");
  EXPECT_EQ(Counted(16, "GPU"), "16 GPUs");
}

}  // namespace
}  // namespace support
