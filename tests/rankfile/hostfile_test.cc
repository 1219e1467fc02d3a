// SPDX-License-Identifier: Apache-2.0

#include "rankfile/hostfile.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "rankfile/ddl.h"
#include "rankfile/parse_error.h"
#include "tests/rankfile/readme_vectors.h"

namespace rankfile {
namespace {

TEST(Hostfile, ReadsAndRefusesAsTheReadmeSays) {
  CheckReadmeVectors("hostfile",
                     [](const std::string& text) { return FormatHostfile(ParseHostfile(text)); });
}

TEST(Hostfile, TellsAHostWithoutSlotsFromOneWithOne) {
  const std::vector<HostfileEntry> entries = ParseHostfile("a\nb slots=1\n");
  EXPECT_FALSE(entries[0].slots);
  EXPECT_EQ(entries[1].slots, 1);
}

TEST(Hostfile, FillsHostsInTurn) {
  const Placement placement = PlaceOnHosts(ParseHostfile("b slots=2\na\nc:2"));
  EXPECT_EQ(FormatDdlHostList(placement), "b:0,1;a:2;c:3,4");
  EXPECT_EQ(FormatHostfile(HostfileOf(placement)), "b slots=2\na slots=1\nc slots=2\n");
}

TEST(Hostfile, RefusesMoreRanksThanThereMayBe) {
  EXPECT_THROW(PlaceOnHosts(ParseHostfile("a slots=1048576\nb")), std::invalid_argument);
}

TEST(Hostfile, RefusesMoreHostsThanThereMayBe) {
  std::string text;
  for (int i = 0; i < 65536; ++i) text.append("n").append(std::to_string(i)).append("\n");
  EXPECT_EQ(ParseHostfile(text).size(), 65536u);
  EXPECT_THROW(ParseHostfile(text + "x\n"), ParseError);
}

}  // namespace
}  // namespace rankfile
