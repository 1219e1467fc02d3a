// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/trainer/control/sample_status.h"
#include "tests/trainer/temporary_folder.h"
#include "trainer/checkpoint/names.h"
#include "trainer/checkpoint/run_lock.h"
#include "trainer/control/control_server.h"
#include "trainer/core/error.h"

namespace ddlctl {
namespace {

using testing::HasSubstr;
using trainer::ControlOrder;
using trainer::Error;

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    address_.host = trainer::HostName();
    address_.pid = 7;
    address_.socket = Path("socket");
  }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  void Write() const {
    std::ofstream(Path(trainer::kControlAddressName)) << FormatAddress(address_);
  }
  void WriteLastWords() {
    address_.last = trainer::SampleStatus();
    address_.last->state = trainer::RunState::kDone;
    Write();
  }
  static std::string RefusalOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
      return error.what();
    }
    return "none";
  }

  const trainer::TemporaryFolder folder_;
  trainer::ControlAddress address_;
  trainer::RunControl control_{{.ranks = 2, .host = "n1", .pid = 7, .version = "1", .job = ""}, 10};
};

TEST_F(SessionTest, SaysThatThereWasNoTraining) {
  EXPECT_THAT(RefusalOf([&] { Session session(folder_.path()); }),
              HasSubstr("there is no training in " + folder_.path().string() +
                        " that can be asked (no .ddltraind.control in it)"));
}

TEST_F(SessionTest, AsksTheTrainingThatTheFileNames) {
  Write();
  const trainer::ControlServer server(address_.socket, control_, ::geteuid());
  Session session(folder_.path());
  EXPECT_TRUE(session.is_within_reach());
  EXPECT_EQ(session.Status().state, trainer::RunState::kStarting);
  EXPECT_EQ(session.Ask({ControlOrder::kStop}).refusal, "");
  EXPECT_TRUE(control_.Look().stop);
}

TEST_F(SessionTest, OfATrainingThatHasEndedKnowsItsLastWordsAlone) {
  WriteLastWords();
  Session session(folder_.path());
  EXPECT_EQ(session.Status().step, 1200);
  EXPECT_EQ(RefusalOf([&] { session.Ask({ControlOrder::kPause}); }),
            "the training in " + folder_.path().string() + " has ended: done, step 1200/25000");
}

TEST_F(SessionTest, ReadsTheLastWordsOfATrainingThatEndsMeanwhile) {
  Write();
  std::optional<trainer::ControlServer> server;
  server.emplace(address_.socket, control_, ::geteuid());
  Session session(folder_.path());
  session.Status();
  WriteLastWords();
  server.reset();
  EXPECT_EQ(session.Status().state, trainer::RunState::kDone);
}

TEST_F(SessionTest, FollowsTheNextLaunch) {
  Write();
  Session session(folder_.path());
  address_.socket = Path("second");
  Write();
  const trainer::ControlServer server(address_.socket, control_, ::geteuid());
  EXPECT_EQ(session.Status().identity.host, "n1");
}

TEST_F(SessionTest, SaysThatATrainingWasKilled) {
  Write();
  Session session(folder_.path());
  EXPECT_THAT(RefusalOf([&] { session.Status(); }),
              HasSubstr("does not run any more: rank 0, process 7 on " + address_.host + ","));
}

// As where systemd-tmpfiles has cleaned /tmp, or in a container that has another one.
TEST_F(SessionTest, ATrainingThatRunsIsNotSaidToBeOverWhereItsSocketIsGone) {
  Write();
  const std::string results = folder_.path().string();
  const auto runs =
      testing::AllOf(HasSubstr("the training in " + results + " runs (process "),
                     HasSubstr("its socket " + address_.socket + " cannot be reached from here"),
                     HasSubstr("touch " + results + "/stop ends it with a checkpoint"));
  Session session(folder_.path());
  const auto refusals = [&] {
    return std::vector<std::string>{RefusalOf([&] { session.Status(); }),
                                    RefusalOf([&] { session.Ask({ControlOrder::kStop}); })};
  };
  auto lock = trainer::LockRun(folder_.path(), {});
  EXPECT_THAT(refusals(), testing::Each(runs));
  // A socket that is left, at which nobody listens.
  std::ofstream(address_.socket).put('x');
  EXPECT_THAT(refusals(), testing::Each(runs));
  // Left by a run that was killed.
  lock.reset();
  std::ofstream(Path(".ddltraind.lock")).put('x');
  EXPECT_THAT(refusals(), testing::Each(HasSubstr("does not run any more")));
  // The lock is in another --model_dir.
  address_.pid = ::getpid();
  Write();
  ASSERT_EQ(::prctl(PR_SET_NAME, "ddltraind"), 0);
  EXPECT_THAT(RefusalOf([&] { Session(folder_.path()).Status(); }), runs);
  ASSERT_EQ(::prctl(PR_SET_NAME, "other"), 0);
  EXPECT_THAT(RefusalOf([&] { Session(folder_.path()).Status(); }),
              HasSubstr("does not run any more"));
}

TEST_F(SessionTest, ATrainingOnAnotherMachineIsOutOfReachUntilItHasEnded) {
  address_.host = "elsewhere";
  Write();
  EXPECT_FALSE(Session(folder_.path()).is_within_reach());
  WriteLastWords();
  EXPECT_TRUE(Session(folder_.path()).is_within_reach());
}

}  // namespace
}  // namespace ddlctl
