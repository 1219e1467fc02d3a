// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/nodes_of_job.h"

#include <thread>

#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using Clock = NodesOfJob::Clock;
using std::chrono::milliseconds;

// Slurm's answer is what a file of the test has; each question leaves a line in "asked".
class NodesOfJobTest : public SupervisorTest {
 protected:
  NodesOfJobTest() {
    options_.question = {"/bin/sh", "-c", "cd '" + directory_ + "'; echo x >> asked; cat answer"};
    options_.environment = {{"PATH", "/usr/bin:/bin"}};
    options_.rejection = [](const std::string& text) { return text; };
    options_.first_query_after = milliseconds(1000);
  }

  // Looks at `now` until the question that was asked then is answered.
  std::string Answer(NodesOfJob& nodes, Clock::time_point now) const {
    std::string rejection = nodes.Look(now);
    for (int i = 1; nodes.question() != 0 && rejection.empty(); ++i) {
      std::this_thread::sleep_for(milliseconds(5));
      rejection = nodes.Look(now + milliseconds(100) * i);
    }
    return rejection;
  }

  std::size_t Questions() const { return Content("asked").size() / 2; }
  void SetAnswer(const std::string& text) const { std::ofstream(directory_ + "/answer") << text; }

  NodesOfJobOptions options_;
  const Clock::time_point start_ = Clock::now();
};

TEST_F(NodesOfJobTest, AreAskedForAgainAndAgainWhileNoRankStarts) {
  SetAnswer("");
  NodesOfJob nodes(options_);
  EXPECT_FALSE(nodes.deadline());
  nodes.ExpectStart(start_);
  EXPECT_EQ(nodes.deadline(), start_ + milliseconds(1000));
  EXPECT_EQ(nodes.Look(start_ + milliseconds(999)), "");
  EXPECT_EQ(nodes.question(), 0);
  EXPECT_EQ(Answer(nodes, start_ + milliseconds(1000)), "");
  EXPECT_EQ(Questions(), 1U);
  // Twice as long after the answer.
  ASSERT_TRUE(nodes.deadline());
  const Clock::time_point next = *nodes.deadline();
  EXPECT_GE(next, start_ + milliseconds(3000));
  SetAnswer("n3 is gone");
  EXPECT_EQ(nodes.Look(next - milliseconds(1)), "");
  EXPECT_EQ(Answer(nodes, next), "n3 is gone");
  EXPECT_EQ(Questions(), 2U);
}

TEST_F(NodesOfJobTest, AreNotAskedForOnceARankHasStarted) {
  SetAnswer("n3 is gone");
  NodesOfJob nodes(options_);
  nodes.ExpectStart(start_);
  nodes.Dismiss();
  EXPECT_FALSE(nodes.deadline());
  EXPECT_EQ(nodes.Look(start_ + milliseconds(5000)), "");
  EXPECT_EQ(Questions(), 0U);
}

TEST_F(NodesOfJobTest, AreThereWhereSlurmDoesNotAnswer) {
  NodesOfJob nodes(options_);  // cat finds no answer, and fails
  nodes.ExpectStart(start_);
  EXPECT_EQ(Answer(nodes, start_ + milliseconds(1000)), "");
  EXPECT_EQ(nodes.QueryNow(), "");
  EXPECT_EQ(Questions(), 2U);
  options_.question = {"/no/such/program"};
  EXPECT_EQ(nodes.QueryNow(), "");
  options_.question.clear();
  nodes.Dismiss();
  nodes.ExpectStart(start_);
  EXPECT_FALSE(nodes.deadline());
  EXPECT_EQ(nodes.QueryNow(), "");
}

TEST_F(NodesOfJobTest, AreAskedForAtOnceAfterAFailedStart) {
  SetAnswer("n3 is gone");
  EXPECT_EQ(NodesOfJob(options_).QueryNow(), "n3 is gone");
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NodesNotStarted, AreNamedOnceInTheOrderOfTheirRanks) {
  const std::vector<std::string> hosts = {"n2", "n1", "n2", "n3", "n1"};
  EXPECT_THAT(NodesNotStarted(hosts, {}), ElementsAre("n2", "n1", "n3"));
  EXPECT_THAT(NodesNotStarted(hosts, {0, 1, 3}), ElementsAre("n2", "n1"));
  EXPECT_THAT(NodesNotStarted(hosts, {0, 1, 2, 3, 4}), IsEmpty());
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

}  // namespace

}  // namespace launcher
