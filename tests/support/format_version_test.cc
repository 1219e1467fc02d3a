// SPDX-License-Identifier: Apache-2.0

#include "support/format_version.h"

#include <gtest/gtest.h>

#include <optional>

namespace support {
namespace {

TEST(FormatVersion, IsTheNumberBehindTheBeginning) {
  EXPECT_EQ(FormatVersion("a file 1\nmore", "a file "), 1);
  EXPECT_EQ(FormatVersion("a file 20, and more", "a file "), 20);
  EXPECT_EQ(FormatVersion("a file 3", "a file "), 3);
}

TEST(FormatVersion, OfAnyOtherTextThereIsNone) {
  for (const char* text : {"", "a file", "a file ", "a file x", "a file -1", "another file 1",
                           "a file 99999999999999999999"}) {
    EXPECT_EQ(FormatVersion(text, "a file "), std::nullopt) << text;
  }
}

TEST(FormatVersion, ANewerOneIsDescribedWithWhatIsKnownAndWhatToDo) {
  EXPECT_EQ(DescribeNewerFormat("a file", 3, 1),
            "a file of format 3, and this program reads format 1: use the version of ddlrun that "
            "has written it, or a newer one");
}

}  // namespace
}  // namespace support
