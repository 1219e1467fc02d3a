// SPDX-License-Identifier: Apache-2.0

#include "support/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace support {
namespace {

using testing::MatchesRegex;

TEST(Build, VersionIsThreeNumbers) {
  EXPECT_THAT(ProgramVersion(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

// Every optional library is in one of the lines.
TEST(Build, SaysWhatItWasBuiltWithAndWithout) {
  const std::string text = BuildText();
  EXPECT_THAT(text, MatchesRegex("built with: [^\n]+(\nbuilt without: [^\n]+)?"));
  for (const char* name :
       {"oneDNN", "CUDA", "cuDNN", "NCCL", "NVTX", "MPI", "PMIx", "UCX", "libpng"}) {
    const std::size_t first = text.find(name);
    ASSERT_NE(first, std::string::npos) << name;
    EXPECT_EQ(text.find(name, first + 1), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace support
