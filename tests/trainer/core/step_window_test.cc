// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/step_window.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(ParseStepWindow, TakesTheFirstStepAndTheirNumber) {
  const auto window = ParseStepWindow("200:20");
  ASSERT_TRUE(window);
  EXPECT_EQ(window->first, 200);
  EXPECT_EQ(window->count, 20);
  EXPECT_EQ(window->last(), 219);
  EXPECT_TRUE(ParseStepWindow("1:1000"));
}

TEST(ParseStepWindow, TakesNothingElse) {
  for (const char* text : {"", ":", "1", "1:", ":1", "0:1", "1:0", "-1:1", "1:1001", "1:2:3",
                           " 1:2", "1:2 ", "+1:2", "1,2", "a:b", "99999999999999999999:1"}) {
    EXPECT_FALSE(ParseStepWindow(text)) << text;
  }
}

}  // namespace
}  // namespace trainer
