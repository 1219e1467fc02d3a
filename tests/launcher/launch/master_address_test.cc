// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/master_address.h"

#include <gtest/gtest.h>

#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MasterAddress, IsAHostOfTheJobByAnyOfItsNames) {
  for (const char* address : {"n1", "N2", "n2.site.example", "n1.site.example"}) {
    EXPECT_EQ(MasterAddressProblem(address, {"n1", "n2"}), "") << address;
  }
  EXPECT_EQ(MasterAddressProblem("n1", {"n1.site.example"}), "");
}

TEST(MasterAddress, OfAnotherJobIsSaidWithWhatRanksWouldBeTold) {
  for (const char* address : {"node9", "n3", "n11", "n1x.site.example"}) {
    EXPECT_THAT(MasterAddressProblem(address, {"n1", "n2"}),
                AllOf(HasSubstr(std::string("MASTER_ADDR=") + address + " is no host of this job"),
                      HasSubstr("tells them n1")))
        << address;
  }
  EXPECT_THAT(MasterAddressProblem("n1.other.example", {"n1.site.example"}),
              HasSubstr("is no host of this job"));
}

TEST(MasterAddress, OfEachNodeItselfIsNoneForSeveral) {
  for (const char* address :
       {"localhost", "localhost.localdomain", "127.0.0.1", "127.0.1.1", "::1"}) {
    EXPECT_EQ(MasterAddressProblem(address, {"n1"}), "") << address;
    EXPECT_THAT(MasterAddressProblem(address, {"n1", "n2"}), HasSubstr("another machine on each"))
        << address;
  }
}

TEST(MasterAddress, InNumbersIsNotLookedUp) {
  for (const char* address : {"10.0.0.7", "192.0.2.1", "fd00::2"}) {
    EXPECT_EQ(MasterAddressProblem(address, {"n1", "n2"}), "") << address;
  }
}

TEST(MasterPort, IsAboveTheEphemeralRangeAndDependsOnTheSeed) {
  for (const unsigned long seed : {0UL, 4535UL, 4536UL, 123456789UL}) {
    EXPECT_GE(ChooseMasterPort(seed), 61000);
    EXPECT_LE(ChooseMasterPort(seed), 65535);
  }
  EXPECT_NE(ChooseMasterPort(1000), ChooseMasterPort(2000));
}

}  // namespace

}  // namespace launcher
