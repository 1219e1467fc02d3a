// SPDX-License-Identifier: Apache-2.0

#include "rankfile/ddl.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "rankfile/parse_error.h"
#include "tests/rankfile/readme_vectors.h"

namespace rankfile {
namespace {

TEST(DdlHostList, ReadsAndRefusesAsTheReadmeSays) {
  CheckReadmeVectors("ddl-host-list", [](const std::string& text) {
    return FormatDdlHostList(ParseDdlHostList(text));
  });
}

TEST(DdlHostList, NumbersAreGlobalRanks) {
  const Placement placement = ParseDdlHostList("g28n14:0,2;g28n15:1,3");
  ASSERT_EQ(placement.ranks.size(), 4u);
  EXPECT_EQ(placement.ranks[1].host, "g28n15");
  EXPECT_EQ(placement.ranks[2].host, "g28n14");
}

TEST(DdlHostList, DoesNotWriteABrokenPlacement) {
  EXPECT_THROW(FormatDdlHostList({{{.host = "a:b", .cores = {}}}}), std::invalid_argument);
}

TEST(DdlOptions, ReadsAndRefusesAsTheReadmeSays) {
  CheckReadmeVectors("ddl-options", [](const std::string& text) {
    return FormatDdlOptions(ParseDdlOptions(text));
  });
}

TEST(DdlOptions, CountsRanks) { EXPECT_EQ(ParseDdlOptions("-mode p:6x18x4x2").RankCount(), 864); }

TEST(DdlOptions, DoesNotWriteWhatWouldNotReadBack) {
  DdlOptions options;
  options.mode = 'z';
  EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument);
  options = DdlOptions();
  options.gpus_per_node = 0;
  EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument);
  options.gpus_per_node = kMaxRanks;
  EXPECT_NO_THROW(FormatDdlOptions(options));
  options.nodes_per_rack = 2;
  EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument);
  for (const char* word : {"", "a b", "a\nb", "-mode"}) {
    options = DdlOptions();
    options.extra = {word};
    EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument) << word;
  }
}

}  // namespace
}  // namespace rankfile
