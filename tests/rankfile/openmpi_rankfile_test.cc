// SPDX-License-Identifier: Apache-2.0

#include "rankfile/openmpi_rankfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "rankfile/parse_error.h"
#include "tests/rankfile/readme_vectors.h"

namespace rankfile {
namespace {

TEST(OmpiRankfile, ReadsAndRefusesAsTheReadmeSays) {
  CheckReadmeVectors("rankfile",
                     [](const std::string& text) { return FormatRankfile(ParseRankfile(text)); });
}

TEST(OmpiRankfile, ResolvesRelativeHostsAsTheReadmeSays) {
  CheckReadmeVectors("rankfile-on-n1-n2", [](const std::string& text) {
    return FormatRankfile(ParseRankfile(text, "rankfile", {"n1", "n2"}));
  });
}

TEST(OmpiRankfile, RefusesDuplicateRankWithFileAndLine) {
  try {
    ParseRankfile("rank 0=a slot=0:0\n\nrank 0=a slot=0:1\n", "/tmp/RANKFILE");
    FAIL();
  } catch (const ParseError& error) {
    EXPECT_EQ(std::string(error.what()), "/tmp/RANKFILE:3:1: rank 0 is already given at 1:1");
  }
}

TEST(OmpiRankfile, KeepsEveryCoreOfASocketApartFromNumbers) {
  const Placement placement = ParseRankfile("rank 0=a slot=1:*");
  EXPECT_EQ(placement.ranks[0].cores,
            (std::vector<CoreRange>{{.socket = 1, .first = 0, .last = kEveryCore}}));
}

TEST(OmpiRankfile, DoesNotWriteWhatOpenMpiCannotRead) {
  Placement scattered{{{.host = "a", .cores = {}}}};
  EXPECT_THROW(FormatRankfile(scattered), std::invalid_argument);  // no cores
  for (int core = 0; core < 20; core += 2) {
    scattered.ranks[0].cores.push_back({.socket = 0, .first = core, .last = core});
  }
  EXPECT_EQ(FormatRankfile(scattered),
            "rank 0=a     slot=0:0;0:2;0:4;0:6;0:8;0:10;0:12;0:14;0:16;0:18\n");
  for (int core = 20; core < 40; core += 2) {
    scattered.ranks[0].cores.push_back({.socket = 0, .first = core, .last = core});
  }
  EXPECT_THROW(FormatRankfile(scattered), std::invalid_argument);  // 64 characters or more
}

TEST(OmpiRankfile, DoesNotWriteABrokenPlacement) {
  EXPECT_THROW(FormatRankfile({{{.host = "a b", .cores = {{.socket = 0}}}}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace rankfile
