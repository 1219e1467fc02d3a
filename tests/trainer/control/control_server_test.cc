// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/other_user.h"
#include "tests/trainer/temporary_folder.h"
#include "trainer/control/control_client.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// What comes back for these bytes until the other end closes; shuts down the way there first if so
// told.
std::string Exchanged(const std::string& path, const std::string& bytes, bool shuts_down = false) {
  int error = 0;
  const support::Descriptor socket = ConnectTo(path, error);
  if (error != 0) return "no connection";
  static_cast<void>(::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  if (shuts_down) ::shutdown(socket.fd(), SHUT_WR);
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::recv(socket.fd(), part.data(), part.size(), 0);
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() { control_.Happened(RunEvent::kStep); }
  std::string path() const { return (folder_.path() / "socket").string(); }
  ControlServer& Start(uid_t uid = ::geteuid()) { return server_.emplace(path(), control_, uid); }
  void ExpectNothingAsked() {
    EXPECT_TRUE(control_.status().asked.empty());
    EXPECT_EQ(control_.display_every(), 10);
  }

  const TemporaryFolder folder_;
  RunControl control_{{.ranks = 2, .host = "n1", .pid = 7, .version = "1", .job = ""}, 10};
  std::optional<ControlServer> server_;
};

TEST_F(ControlServerTest, AnswersWithTheStatus) {
  Start();
  const ControlAnswer answer = Ask(path(), {});
  EXPECT_EQ(answer.refusal, "");
  EXPECT_EQ(answer.status.state, RunState::kTraining);
  EXPECT_EQ(answer.status.identity.host, "n1");
}

TEST_F(ControlServerTest, LeavesOrdersToTheLoop) {
  Start();
  EXPECT_EQ(Ask(path(), {ControlOrder::kPause}).refusal, "");
  EXPECT_TRUE(control_.Look().pause);
  EXPECT_EQ(Ask(path(), {ControlOrder::kSet, 3}).status.display_every, 3);
  EXPECT_EQ(Ask(path(), {ControlOrder::kResume}).refusal, "");
  EXPECT_THAT(Ask(path(), {ControlOrder::kResume}).refusal, HasSubstr("it is not paused"));
}

TEST_F(ControlServerTest, TakesAMessageInPieces) {
  Start();
  int error = 0;
  const support::Descriptor socket = ConnectTo(path(), error);
  for (const char letter : FormatRequest({ControlOrder::kStop}) + "\n") {
    ASSERT_EQ(::send(socket.fd(), &letter, 1, 0), 1);
  }
  std::array<char, 1> first{};
  ASSERT_EQ(::recv(socket.fd(), first.data(), first.size(), 0), 1);
  EXPECT_TRUE(control_.Look().stop);
}

TEST_F(ControlServerTest, RefusesWhatIsNoMessageAndChangesNothing) {
  Start();
  for (const std::string& text :
       {std::string("pause\n"), std::string("\n"),
        std::string("{\"protocol\":9,\"do\":\"stop\"}\n"), std::string("\0\xff\n", 3),
        std::string("GET / HTTP/1.1\r\n\r\n"), std::string(kMaxRequestBytes + 1, ' '),
        FormatRequest({ControlOrder::kStop}).substr(1) + "\n",
        std::string(kMaxRequestBytes, ' ') + FormatRequest({ControlOrder::kStop}) + "\n"}) {
    EXPECT_THAT(Exchanged(path(), text),
                StartsWith(R"({"protocol":1,"refused":"the message is not understood: )"));
  }
  ExpectNothingAsked();
  EXPECT_EQ(Ask(path(), {}).refusal, "");
}

// Without its end it is no message.
TEST_F(ControlServerTest, TakesNoMessageThatIsCutOff) {
  Start();
  EXPECT_EQ(Exchanged(path(), FormatRequest({ControlOrder::kStop}), /*shuts_down=*/true), "");
  EXPECT_EQ(Exchanged(path(), "", /*shuts_down=*/true), "");
  ExpectNothingAsked();
}

TEST_F(ControlServerTest, NeverWaitsForAClientThatSaysNothing) {
  Start();
  std::vector<support::Descriptor> silent;
  int error = 0;
  for (std::size_t i = 0; i + 1 < ControlServer::kMaxClients; ++i) {
    silent.push_back(ConnectTo(path(), error));
  }
  EXPECT_EQ(Ask(path(), {}).refusal, "");
  // With as many as there may be the next one waits until the first are sent away.
  silent.push_back(ConnectTo(path(), error));
  EXPECT_EQ(Ask(path(), {}).refusal, "");
  std::array<char, 1> none{};
  EXPECT_EQ(::recv(silent.front().fd(), none.data(), none.size(), 0), 0);
}

TEST_F(ControlServerTest, SaysNothingToAnotherUser) {
  Start(::geteuid() + 1);
  EXPECT_EQ(Exchanged(path(), FormatRequest({ControlOrder::kStop}) + "\n"), "");
  ExpectNothingAsked();
}

// The same with somebody who really is another, in a folder that they can reach.
TEST_F(ControlServerTest, SaysNothingToAProcessOfAnotherUser) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  const std::string message = FormatRequest({ControlOrder::kStop}) + "\n";
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();  // before there are threads
  ASSERT_GE(child, 0);
  char go = 'g';
  if (child == 0) {
    if (::setuid(tests::kNobody) != 0 || ::read(pipe[0], &go, 1) != 1) ::_exit(2);
    ::_exit(Exchanged(path(), message).empty() ? 0 : 1);
  }
  Start();
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  ASSERT_EQ(::write(pipe[1], &go, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ExpectNothingAsked();
}

TEST_F(ControlServerTest, IsGoneWithItsSocket) {
  Start();
  EXPECT_TRUE(std::filesystem::is_socket(path()));
  server_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_THROW(Ask(path(), {}), NobodyListens);
}

TEST_F(ControlServerTest, AProcessThatWasKilledLeavesASocketAtWhichNobodyListens) {
  { const support::Descriptor left = ListenAt(path()); }
  EXPECT_THROW(Ask(path(), {}), NobodyListens);
  Start();
  EXPECT_EQ(Ask(path(), {}).refusal, "");
}

TEST_F(ControlServerTest, RefusesAPathThatIsTooLong) {
  const std::string path = (folder_.path() / std::string(200, 'x')).string();
  EXPECT_THROW(ControlServer(path, control_, ::geteuid()), Error);
  EXPECT_THROW(Ask(path, {}), Error);
}

TEST_F(ControlServerTest, OfAFolderThatIsNotThereSaysSo) {
  try {
    ControlServer((folder_.path() / "none" / "socket").string(), control_, ::geteuid());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_THAT(error.what(), HasSubstr("/none/socket: No such file"));
  }
}

// Whatever somebody sends, and however they leave: the next one is answered.
TEST_F(ControlServerTest, OutlivesNoise) {
  Start();
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string noise(random() % 5000, '\0');
    for (char& letter : noise) letter = static_cast<char>(random());
    int error = 0;
    const support::Descriptor socket = ConnectTo(path(), error);
    static_cast<void>(::send(socket.fd(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  EXPECT_EQ(Ask(path(), {}).refusal, "");
  ExpectNothingAsked();
}

TEST(ControlClient, BelievesNoSocketOfAnotherUser) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  const std::string path = (folder.path() / "socket").string();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::setuid(tests::kNobody) != 0) ::_exit(2);
    const support::Descriptor listener = ListenAt(path);
    if (::write(pipe[1], "x", 1) != 1) ::_exit(3);
    ::pause();
  }
  char ready = 0;
  ASSERT_EQ(::read(pipe[0], &ready, 1), 1);
  try {
    Ask(path, {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_NOPERM);
    EXPECT_THAT(error.what(), HasSubstr("is the socket of another user"));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace trainer
