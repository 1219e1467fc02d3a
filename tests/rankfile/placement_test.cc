// SPDX-License-Identifier: Apache-2.0

#include "rankfile/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "rankfile/host_name.h"
#include "tests/rankfile/readme_vectors.h"

namespace rankfile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two ranks on each of two hosts, with cores.
Placement ValidPlacement() {
  return {{{.host = "a", .cores = {{.socket = 0, .first = 0, .last = 3}}},
           {.host = "b", .cores = {{.socket = 0, .first = 0, .last = 3}}},
           {.host = "a", .cores = {{.socket = 1, .first = 0, .last = kEveryCore}}},
           {.host = "b", .cores = {{.socket = 0, .first = 0, .last = 3}, {.socket = 1}}}}};
}

// Expects a problem of `rank` that says `message`.
void ExpectProblem(const Placement& placement, int rank, const std::string& message) {
  const auto problem = FindProblem(placement);
  ASSERT_TRUE(problem) << message;
  EXPECT_EQ(problem->rank, rank);
  EXPECT_THAT(problem->message, HasSubstr(message));
  EXPECT_THROW(RequireValid(placement), std::invalid_argument);
}

TEST(Placement, TakesAnEmptyAndAValidOne) {
  EXPECT_FALSE(FindProblem({}));
  EXPECT_FALSE(FindProblem(ValidPlacement()));
  EXPECT_NO_THROW(RequireValid(ValidPlacement()));
}

TEST(Placement, FindsBadHostNames) {
  Placement placement = ValidPlacement();
  placement.ranks[2].host = "a;rm -rf";
  ExpectProblem(placement, 2, "is not a host name");
  placement.ranks[2].host = "a.x.org";
  ExpectProblem(placement, 2, "a.x.org and a are one host spelled in two ways");
}

TEST(Placement, FindsUnboundRanksAmongBoundOnes) {
  Placement placement = ValidPlacement();
  placement.ranks[1].cores.clear();
  ExpectProblem(placement, 1, "give them to all or to none");
}

TEST(Placement, FindsCoresThatAreNotInNormalForm) {
  Placement placement = ValidPlacement();
  std::vector<CoreRange>& cores = placement.ranks[3].cores;
  cores = {{.socket = 1}, {.socket = 0}};
  ExpectProblem(placement, 3, "not ascending and apart");
  cores = {{.socket = 0, .first = 0, .last = 1}, {.socket = 0, .first = 2, .last = 3}};
  ExpectProblem(placement, 3, "not ascending and apart");
  cores = {{.socket = 0, .first = 3, .last = 1}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = -2}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = 0, .first = 0, .last = kMaxCore + 1}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = kWholeNode, .first = 0, .last = kEveryCore}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = kWholeNode, .first = 0, .last = 1}};
  ExpectProblem(placement, 3, "use one form");
}

TEST(Placement, MakesOneRangeOfThoseThatTouch) {
  EXPECT_THAT(NormalCores({{1, 4, 5}, {0, 2, 3}, {0, 0, 1}, {0, 1, 1}, {0, 5, 5}}),
              ElementsAre(CoreRange{0, 0, 3}, CoreRange{0, 5, 5}, CoreRange{1, 4, 5}));
  EXPECT_THAT(NormalCores({{0, 7, 9}, {0, 0, kEveryCore}}),
              ElementsAre(CoreRange{0, 0, kEveryCore}));
}

TEST(Placement, ListsRanksByHostInTheOrderOfTheLowestRank) {
  const std::vector<HostRanks> hosts = RanksByHost(ValidPlacement());
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].host, "a");
  EXPECT_THAT(hosts[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(hosts[1].ranks, ElementsAre(1, 3));
}

TEST(HostName, ComparesAsTheReadmeSays) {
  CheckReadmeVectors("same-host", [](const std::string& text) {
    const std::size_t blank = text.find(' ');
    const std::string left = text.substr(0, blank);
    const std::string right = text.substr(blank + 1);
    EXPECT_EQ(SameHost(left, right), SameHost(right, left));
    return SameHost(left, right) ? "same" : "different";
  });
}

TEST(HostName, FindsASecondSpellingInEitherOrder) {
  HostSpellings qualified_first;
  EXPECT_EQ(qualified_first.Add("a.x.org"), nullptr);
  EXPECT_EQ(qualified_first.Add("a.x.org"), nullptr);
  EXPECT_EQ(qualified_first.Add("a.y.org"), nullptr);
  EXPECT_EQ(qualified_first.Add("b"), nullptr);
  const std::string* other = qualified_first.Add("a");
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(*other, "a.x.org");
  EXPECT_NE(qualified_first.Add("B.x.org"), nullptr);
}

}  // namespace
}  // namespace rankfile
