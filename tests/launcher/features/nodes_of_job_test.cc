// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/nodes_of_job.h"

#include <thread>

#include "tests/launcher/features/fake_watched_job.h"
#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

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

  // Looks at `ms` until the question that was asked then is answered.
  std::string Answer(NodesOfJob& nodes, int ms) {
    std::string rejection = job_.At(ms, nodes);
    for (int i = 1; nodes.child() != 0 && rejection.empty(); ++i) {
      std::this_thread::sleep_for(milliseconds(5));
      rejection = job_.At(ms + 100 * i, nodes);
    }
    return rejection;
  }

  // What is said of a start that has failed.
  std::string AtEnd(NodesOfJob& nodes, int exit_code = 1) const {
    JobResult result;
    result.exit_code = exit_code;
    nodes.OnEnd(job_, &result);
    return result.own_end ? result.own_end->text : "";
  }

  std::size_t Questions() const { return Content("asked").size() / 2; }
  void SetAnswer(const std::string& text) const { std::ofstream(directory_ + "/answer") << text; }

  NodesOfJobOptions options_;
  FakeWatchedJob job_;
};

TEST_F(NodesOfJobTest, AreAskedForAgainAndAgainWhileNoRankStarts) {
  SetAnswer("");
  NodesOfJob nodes(options_);
  EXPECT_FALSE(nodes.deadline());
  nodes.OnLaunch(job_);
  EXPECT_EQ(job_.At(999, nodes), "");
  EXPECT_EQ(nodes.child(), 0);
  EXPECT_EQ(Answer(nodes, 1000), "");
  EXPECT_EQ(Questions(), 1U);
  // Twice as long after the answer.
  ASSERT_TRUE(nodes.deadline());
  const int next = static_cast<int>(
      std::chrono::duration_cast<milliseconds>(nodes.deadline()->time_since_epoch()).count());
  EXPECT_GE(next, 3000);
  SetAnswer("n3 is gone");
  EXPECT_EQ(job_.At(next - 1, nodes), "");
  EXPECT_EQ(Answer(nodes, next), "n3 is gone");
  EXPECT_EQ(Questions(), 2U);
  EXPECT_TRUE(job_.was_killed);
  EXPECT_EQ(job_.end->exit_code, 78);
  EXPECT_EQ(job_.end->kind, OwnEnd::Kind::kRejected);
}

TEST_F(NodesOfJobTest, AreNotAskedForOnceARankHasStarted) {
  SetAnswer("n3 is gone");
  NodesOfJob nodes(options_);
  nodes.OnLaunch(job_);
  job_.started_ranks = {0};
  EXPECT_EQ(job_.At(5000, nodes), "");
  EXPECT_FALSE(nodes.deadline());
  EXPECT_EQ(AtEnd(nodes), "");
  EXPECT_EQ(Questions(), 0U);
}

TEST_F(NodesOfJobTest, AreThereWhereSlurmDoesNotAnswer) {
  NodesOfJob nodes(options_);  // cat finds no answer, and fails
  nodes.OnLaunch(job_);
  EXPECT_EQ(Answer(nodes, 1000), "");
  EXPECT_EQ(AtEnd(nodes), "");
  EXPECT_EQ(Questions(), 2U);
  for (const auto& question : {std::vector<std::string>{"/no/such/program"}, {}}) {
    options_.question = question;
    NodesOfJob unknown(options_);
    unknown.OnLaunch(job_);
    EXPECT_EQ(unknown.deadline().has_value(), !question.empty());
    EXPECT_EQ(job_.At(10000, unknown), "");
    EXPECT_EQ(AtEnd(unknown), "");
  }
}

TEST_F(NodesOfJobTest, AreAskedForAtOnceAfterAFailedStartAlone) {
  SetAnswer("n3 is gone");
  NodesOfJob nodes(options_);
  EXPECT_EQ(AtEnd(nodes), "n3 is gone");
  EXPECT_EQ(AtEnd(nodes, 0), "");
  EXPECT_EQ(Questions(), 1U);
}

}  // namespace

}  // namespace launcher
