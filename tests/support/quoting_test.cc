// SPDX-License-Identifier: Apache-2.0

#include "support/quoting.h"

#include <gtest/gtest.h>

namespace support {
namespace {

TEST(QuoteCommand, QuotesOnlyWhatAShellWouldChange) {
  EXPECT_EQ(QuoteCommand({"a-b_c=/d.e:f,g@h%i+j", "k l", "", "it's", "$HOME", "-mode p:4x1x1x1 "}),
            "a-b_c=/d.e:f,g@h%i+j 'k l' '' 'it'\\''s' '$HOME' '-mode p:4x1x1x1 '");
}

}  // namespace
}  // namespace support
