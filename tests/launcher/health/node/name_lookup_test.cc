// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/name_lookup.h"

#include <gtest/gtest.h>

#include <memory>

namespace launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

TEST(LookUpHost, FindsAddressesAndThisMachine) {
  for (const char* host : {"127.0.0.1", "::1", "localhost"})
    EXPECT_EQ(LookUpHost(host), "") << host;
}

// No name server is asked for a name with a part of more than 63 bytes.
TEST(LookUpHost, SaysWhyThereIsNone) { EXPECT_NE(LookUpHost(std::string(64, 'n')), ""); }

TEST(NameLookup, SaysWhatWasFound) {
  NameLookup found("n1", [](const std::string& host) { return host == "n1" ? "" : "another"; });
  EXPECT_EQ(found.Problem(Clock::now() + seconds(60)), "");
  NameLookup missing("n2", [](const std::string& host) { return host + " is not there"; });
  EXPECT_EQ(missing.Problem(Clock::now() + seconds(60)), "n2 is not there");
}

TEST(NameLookup, DoesNotWaitForNameServersThatDoNotAnswer) {
  // Shared with the thread, which may go on when the test has ended.
  const auto gate = std::make_shared<std::promise<void>>();
  NameLookup lookup("n1", [opened = gate->get_future().share()](const std::string&) {
    opened.wait();
    return std::string();
  });
  EXPECT_EQ(lookup.Problem(Clock::now() + milliseconds(20)), "the name servers do not answer");
  gate->set_value();
}

TEST(NameLookup, LooksForNoHostWhereThereIsNone) {
  NameLookup lookup("", [](const std::string&) { return std::string("was looked up"); });
  EXPECT_EQ(lookup.Problem(Clock::now() + seconds(60)), "");
}

}  // namespace
}  // namespace launcher
