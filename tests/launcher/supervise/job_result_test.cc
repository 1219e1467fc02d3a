// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/job_result.h"

#include <vector>

#include "launcher/protocol/launchers.h"
#include "launcher/supervise/deadline.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(Deadlines, TheFirstOfThemCounts) {
  using std::chrono::microseconds;
  const std::chrono::steady_clock::time_point now{std::chrono::seconds(10)};
  EXPECT_EQ(MillisecondsLeft({}, now), -1);
  EXPECT_EQ(MillisecondsLeft({std::nullopt, std::nullopt}, now), -1);
  EXPECT_EQ(
      MillisecondsLeft({now + microseconds(5000), std::nullopt, now + microseconds(2001)}, now), 3);
  EXPECT_EQ(MillisecondsLeft({now + microseconds(5000), now - microseconds(5000)}, now), 0);
}

// Ranks that are children of ddlrun: it may see the end of a peer before that of the rank which was
// killed.
TEST(AddEnd, NamesTheRankThatIsTheCause) {
  struct Case {
    int first, second;  // exit codes
    double later;       // seconds
    Sent sent;          // before the second one ended
    int cause;
    bool is_stopped = false;
  };
  for (const Case& c : std::vector<Case>{
           {69, 137, 0.001, Sent::kNothing, 1},
           {69, 137, 0.5, Sent::kSigterm, 1},
           {69, 137, 0.5, Sent::kSigkill, 0},
           {69, 137, 1.5, Sent::kSigterm, 0},
           {1, 139, 0.001, Sent::kNothing, 1},
           {1, 139, 0.001, Sent::kSigterm, 0},  // at the end of a process threads may crash
           {1, 134, 0.001, Sent::kNothing, 0},  // of a library which has lost its peer
           {1, 143, 0.001, Sent::kSigterm, 0},
           {1, 2, 0.001, Sent::kNothing, 0},
           {137, 139, 0.001, Sent::kNothing, 0},
           {137, 69, 0.001, Sent::kSigterm, 0},
           {143, 137, 0.5, Sent::kSigterm, 0, /*is_stopped=*/true},
           {75, 1, 0.001, Sent::kSigterm, 1},
           {1, 75, 0.001, Sent::kSigterm, 0},
       }) {
    JobResult result;
    result.stop_requested = c.is_stopped;
    int rank = 0;
    for (const int code : {c.first, c.second}) {
      RankFailure end;
      end.rank = rank;
      end.exit_code = code;
      end.signal = code > 128 ? code - 128 : 0;
      end.seconds = 7 + rank * c.later;
      AddEnd(TraitsOf("local"), end, rank == 0 ? Sent::kNothing : c.sent, &result);
      ++rank;
    }
    ASSERT_TRUE(result.failure.has_value());
    EXPECT_EQ(result.failure->rank, c.cause) << c.first << ", " << c.second;
    EXPECT_EQ(result.exit_code, c.cause == 0 ? c.first : c.second) << c.first << ", " << c.second;
  }
}

TEST(SilentNodes, AreThoseOfWhichNoEndWasTold) {
  const std::vector<std::string> hosts = {"n4", "n1", "n2.site", "n3", "n4"};
  EXPECT_THAT(SilentNodes(hosts, {"n1.site", "n[2-3]"}), ElementsAre("n4"));
  EXPECT_THAT(SilentNodes(hosts, {"n3"}), ElementsAre("n4", "n1", "n2.site"));
  EXPECT_THAT(SilentNodes(hosts, {"n[1-4]"}), IsEmpty());
}

TEST(SilentNodes, AreNoneWhereNothingWasTold) {
  EXPECT_THAT(SilentNodes({"n1", "n2"}, {}), IsEmpty());
  EXPECT_THAT(SilentNodes({"n1", "n2"}, {"n[1-"}), IsEmpty());
}

TEST(SomeOf, NamesAFew) {
  std::vector<std::string> names;
  for (int node = 1; node < 9; ++node) names.push_back("n" + std::to_string(node));
  EXPECT_EQ(SomeOf(names), "n1, n2, n3, n4, n5, n6, n7, n8");
  names.emplace_back("n9");
  EXPECT_EQ(SomeOf(names), "n1, n2, n3, n4, n5, n6, n7, n8, ...");
}

}  // namespace
}  // namespace launcher
