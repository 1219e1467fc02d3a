// SPDX-License-Identifier: Apache-2.0

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/support/other_user.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/control/sample_status.h"
#include "trainer/control/control_message.h"
#include "trainer/control/control_socket.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

ControlAddress SampleAddress() {
  return {.host = "gpu025.example.org",
          .node = "gpu025",
          .job = "123",
          .pid = 4711,
          .socket = "/tmp/ddltraind.abcdef/4711.socket",
          .last = std::nullopt};
}

TEST(ControlAddressText, IsReadBack) {
  const ControlAddress read = ParseAddress(FormatAddress(SampleAddress()));
  EXPECT_EQ(read.host, "gpu025.example.org");
  EXPECT_EQ(read.node, "gpu025");
  EXPECT_EQ(read.job, "123");
  EXPECT_EQ(read.pid, 4711);
  EXPECT_EQ(read.socket, "/tmp/ddltraind.abcdef/4711.socket");
  EXPECT_FALSE(read.last);
}

TEST(ControlAddressText, HasTheLastWordsOfATraining) {
  ControlAddress address = SampleAddress();
  address.last = SampleStatus();
  address.last->state = RunState::kDone;
  const ControlAddress read = ParseAddress(FormatAddress(address));
  ASSERT_TRUE(read.last);
  EXPECT_EQ(read.last->state, RunState::kDone);
  EXPECT_EQ(read.last->step, 1200);
}

TEST(ControlAddressText, OfOutsideSlurmHasNeitherNodeNorJob) {
  ControlAddress address = SampleAddress();
  address.node = "";
  address.job = "";
  EXPECT_EQ(ParseAddress(FormatAddress(address)).job, "");
}

TEST(ControlAddressText, OfAnyOtherKindIsRejected) {
  for (const char* text : {"", "x", "[]", "{}", R"({"host":"a"})", R"({"host":1,"node":"","job":"",
       "pid":1,"socket":"/s","last":null})",
                           R"({"host":"a","node":"","job":"","pid":1,"socket":"/s",
       "last":{}})"}) {
    EXPECT_THROW(ParseAddress(text), Error) << text;
  }
}

// They become arguments of srun, and a path.
TEST(ControlAddressText, NamesThatAreNoneAreRejected) {
  const auto rejected = [](auto change) {
    ControlAddress address = SampleAddress();
    change(address);
    EXPECT_THROW(ParseAddress(FormatAddress(address)), Error) << FormatAddress(address);
  };
  rejected([](ControlAddress& address) { address.host = ""; });
  rejected([](ControlAddress& address) { address.host = "n1,n2"; });
  rejected([](ControlAddress& address) { address.node = "--reboot"; });
  rejected([](ControlAddress& address) { address.node = "n[1-9]"; });
  rejected([](ControlAddress& address) { address.job = "1 2"; });
  rejected([](ControlAddress& address) { address.socket = "socket"; });
  rejected([](ControlAddress& address) { address.socket = ""; });
  rejected([](ControlAddress& address) { address.socket.push_back('\0'); });
}

TEST(ReadAddress, OfADirectoryWithoutATrainingIsNone) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(ReadAddress(directory.path()));
  EXPECT_FALSE(ReadAddress(directory.path() / "none"));
}

TEST(ReadAddress, NamesAFileThatCannotBeRead) {
  const TemporaryDirectory directory;
  const auto file = directory.path() / kControlAddressName;
  std::ofstream(file) << FormatAddress(SampleAddress());
  EXPECT_EQ(ReadAddress(directory.path())->pid, 4711);
  std::ofstream(file) << "{";
  EXPECT_THAT(tests::Rejection<Error>(EX_DATAERR, [&] { ReadAddress(directory.path()); }),
              HasSubstr(file.string() + ": not written by"));
}

TEST(ControlRequestText, IsWhatTheReferenceSays) {
  EXPECT_EQ(FormatRequest({}), R"({"protocol":1,"do":"status"})");
  EXPECT_EQ(FormatRequest({ControlCommand::kPause}), R"({"protocol":1,"do":"pause"})");
  EXPECT_EQ(FormatRequest({ControlCommand::kStacks}), R"({"protocol":1,"do":"stacks"})");
  EXPECT_EQ(FormatRequest({ControlCommand::kSet, 5}),
            R"({"protocol":1,"do":"set","display_every":5})");
}

TEST(ControlRequestText, IsReadBack) {
  for (std::size_t i = 0; i < kControlCommands; ++i) {
    const ControlRequest request = {static_cast<ControlCommand>(i), 7};
    const ParsedRequest parsed = ParseRequest(FormatRequest(request));
    ASSERT_TRUE(parsed.request) << parsed.problem;
    EXPECT_EQ(parsed.request->command, request.command);
    EXPECT_EQ(parsed.request->display_every, request.command == ControlCommand::kSet ? 7 : 0);
  }
  const ParsedRequest status = ParseRequest(FormatRequest({}));
  ASSERT_TRUE(status.request);
  EXPECT_EQ(status.request->command, std::nullopt);
}

TEST(ControlRequestText, OfAnyOtherKindIsNoneAndSaysWhy) {
  const auto problem = [](const std::string& line) {
    const ParsedRequest parsed = ParseRequest(line);
    EXPECT_FALSE(parsed.request) << line;
    return parsed.problem;
  };
  for (const char* text : {"", "{", "[]", "7", "null", "\"pause\"", "{\"protocol\":1", "\xff"}) {
    EXPECT_EQ(problem(text), "no JSON object") << text;
  }
  EXPECT_THAT(problem("{}"), HasSubstr("no message with the number of its protocol"));
  EXPECT_THAT(problem(R"({"protocol":"1","do":"stop"})"), HasSubstr("the number of its protocol"));
  EXPECT_THAT(problem(R"({"protocol":1.0,"do":"stop"})"), HasSubstr("the number of its protocol"));
  EXPECT_EQ(problem(R"({"protocol":2,"do":"stop"})"),
            "protocol 2 where 1 is spoken: use the ddlctl that came with this ddltraind");
  EXPECT_EQ(problem(R"({"protocol":1})"), "nothing to do in it");
  EXPECT_EQ(problem(R"({"protocol":1,"do":["stop"]})"), "nothing to do in it");
  EXPECT_EQ(problem(R"({"protocol":1,"do":"Stop"})"), "\"Stop\", which is not known here");
  EXPECT_EQ(problem(R"({"protocol":1,"do":"stop","now":true})"), "members that are not known here");
  EXPECT_EQ(problem(R"({"protocol":1,"do":"stop","display_every":5})"),
            "members that are not known here");
  EXPECT_EQ(problem(R"({"protocol":1,"do":"stacks","rank":0})"), "members that are not known here");
}

TEST(ControlRequestText, SetsNothingButNumbersFromOneOn) {
  const auto with = [](const std::string& value) {
    return ParseRequest(R"({"protocol":1,"do":"set","display_every":)" + value + "}");
  };
  EXPECT_EQ(with("1").request->display_every, 1);
  EXPECT_EQ(with("2147483647").request->display_every, 2147483647);
  for (const char* value : {"0", "-1", "2147483648", "18446744073709551615", "1.5", "1e3", "\"5\"",
                            "null", "99999999999999999999"}) {
    EXPECT_EQ(with(value).problem, "set needs display_every, from 1 to 2147483647") << value;
  }
  EXPECT_THAT(ParseRequest(R"({"protocol":1,"do":"set"})").problem,
              HasSubstr("needs display_every"));
}

TEST(ControlRequestText, HasALimitOfLength) {
  const std::string request = FormatRequest({ControlCommand::kStop});
  const std::string longest = request + std::string(kMaxRequestBytes - request.size(), ' ');
  EXPECT_TRUE(ParseRequest(longest).request);
  EXPECT_EQ(ParseRequest(longest + " ").problem, "a message of more than 4096 bytes");
  EXPECT_FALSE(ParseRequest(std::string(kMaxRequestBytes, '[')).request);
}

void ExpectSame(const RunStatus& read, const RunStatus& said) {
  EXPECT_EQ(read.state, said.state);
  EXPECT_EQ(read.step, said.step);
  EXPECT_EQ(read.steps, said.steps);
  EXPECT_EQ(read.epoch, said.epoch);
  EXPECT_EQ(read.epochs, said.epochs);
  EXPECT_EQ(read.loss, said.loss);
  EXPECT_EQ(read.images_per_second, said.images_per_second);
  EXPECT_EQ(read.eta_seconds, said.eta_seconds);
  EXPECT_EQ(read.checkpoint_step, said.checkpoint_step);
  EXPECT_EQ(read.times.step, said.times.step);
  EXPECT_EQ(read.times.phases, said.times.phases);
  EXPECT_EQ(read.median_busy_seconds, said.median_busy_seconds);
  ASSERT_EQ(read.loads.size(), said.loads.size());
  for (std::size_t i = 0; i < read.loads.size(); ++i) {
    EXPECT_EQ(read.loads[i].rank, said.loads[i].rank);
    EXPECT_EQ(read.loads[i].host, said.loads[i].host);
    EXPECT_EQ(read.loads[i].busy_seconds, said.loads[i].busy_seconds);
    EXPECT_EQ(read.loads[i].input_wait_seconds, said.loads[i].input_wait_seconds);
    EXPECT_EQ(read.loads[i].gpu_percent, said.loads[i].gpu_percent);
    EXPECT_EQ(read.loads[i].compute_mhz, said.loads[i].compute_mhz);
    EXPECT_EQ(read.loads[i].celsius, said.loads[i].celsius);
  }
  EXPECT_EQ(read.display_every, said.display_every);
  EXPECT_EQ(read.requested, said.requested);
  EXPECT_EQ(read.identity.ranks, said.identity.ranks);
  EXPECT_EQ(read.identity.host, said.identity.host);
  EXPECT_EQ(read.identity.pid, said.identity.pid);
  EXPECT_EQ(read.identity.version, said.identity.version);
  EXPECT_EQ(read.identity.job, said.identity.job);
}

TEST(ControlAnswerText, IsReadBack) {
  const RunStatus status = SampleStatus();
  const std::string line = FormatAnswer({"", status});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_THAT(line, StartsWith(R"({"protocol":1,"status":{"state":"training","step":1200,)"));
  const ControlAnswer answer = ParseAnswer(line);
  EXPECT_EQ(answer.rejection, "");
  ExpectSame(answer.status, status);
  const ControlAnswer rejection = ParseAnswer(FormatAnswer({"not \"now\"\n", status}));
  EXPECT_EQ(rejection.rejection, "not \"now\"\n");
  ExpectSame(rejection.status, status);
}

TEST(ControlAnswerText, ToStacksHasTheNumberOfTheOrder) {
  const std::string line = FormatAnswer(
      {.rejection = "", .status = SampleStatus(), .stack_dump_command = 1764000000000000});
  EXPECT_THAT(line,
              StartsWith(R"({"protocol":1,"stacks_order":1764000000000000,"status":{"state":)"));
  EXPECT_EQ(ParseAnswer(line).stack_dump_command, 1764000000000000U);
  EXPECT_EQ(ParseAnswer(FormatAnswer({"", SampleStatus()})).stack_dump_command, 0U);
  for (const char* number : {"-1", "1.5", "\"1\"", "null"}) {
    std::string strange = line;
    strange.replace(strange.find("1764000000000000"), 16, number);
    EXPECT_THROW(ParseAnswer(strange), Error) << number;
  }
}

TEST(ControlAnswerText, WhatIsNotKnownIsNull) {
  RunStatus status{.loss = INFINITY};
  const std::string line = FormatAnswer({"", status});
  EXPECT_THAT(line, HasSubstr(R"("loss":null,"images_per_second":null,"eta_seconds":null,)"
                              R"("checkpoint_step":null)"));
  const RunStatus read = ParseAnswer(line).status;
  EXPECT_TRUE(std::isnan(read.loss) && std::isnan(read.eta_seconds));
  EXPECT_EQ(read.checkpoint_step, -1);
}

TEST(ControlAnswerText, HasTheLoadsOfRanksWithUnitsInTheirNames) {
  const std::string line = FormatAnswer({"", SampleStatus()});
  EXPECT_THAT(
      line,
      HasSubstr(
          R"("median_own_seconds":0.55,"rank_loads":[{"rank":0,"host":"gpu025.cluster",)"
          R"("own_seconds":0.55,"input_wait_seconds":0.0125,"gpu_busy_percent":98,"clock_mhz":1980,)"
          R"("celsius":61},{"rank":1,"host":"gpu026","own_seconds":0.688,"input_wait_seconds":0.275,)"
          R"("gpu_busy_percent":null,"clock_mhz":null,"celsius":null}])"));
  for (const char* part : {"\"rank\":0", "98", "\"gpu026\"", "0.688"}) {
    std::string strange = line;
    strange.replace(strange.find(part), std::string(part).size(),
                    std::string(part) == "\"rank\":0" ? "\"rank\":-1" : "[]");
    EXPECT_THROW(ParseAnswer(strange), Error) << part;
  }
}

// As one of a ddltraind before it told them.
TEST(ControlAnswerText, MayHaveNoLoads) {
  std::string line = FormatAnswer({"", SampleStatus()});
  const std::size_t begin = line.find("\"median_own");
  line.erase(begin, line.find("\"display_every") - begin);
  const RunStatus read = ParseAnswer(line).status;
  EXPECT_TRUE(read.loads.empty());
  EXPECT_TRUE(std::isnan(read.median_busy_seconds));
}

// Of the most ranks that are told of, with the longest names: it goes out at once, and into the
// file of last words.
TEST(ControlAnswerText, FitsItsLimit) {
  RunStatus status = SampleStatus();
  RankLoads loads;
  loads.SetHosts(std::vector<std::string>(10000, std::string(128, 'x')));
  RankMetrics said = {.input_wait_seconds = 100.0 / 3, .device = {}, .is_known = true};
  said.device.compute_mhz = said.device.celsius = said.device.busy_percent = 65534;
  loads.Add(std::vector<double>(10000, 1000.0 / 3), std::vector<RankMetrics>(10000, said));
  status.loads = loads.Slowest();
  for (RankLoad& load : status.loads) load.rank += 9000;
  const std::string line = FormatAnswer({"", status});
  EXPECT_LT(line.size(), 15000U);
}

TEST(ControlAnswerText, OfNamesThatAreNoUtf8IsStillJson) {
  RunStatus status;
  status.identity.host = "gpu\xff";
  EXPECT_EQ(ParseAnswer(FormatAnswer({"", status})).status.identity.host, "gpu\xEF\xBF\xBD");
}

TEST(ControlAnswerText, OfAnyOtherKindIsRejected) {
  const std::string good = FormatAnswer({"", SampleStatus()});
  for (const std::string& line :
       {std::string(), std::string("[]"), std::string("{}"), good.substr(1),
        std::string(R"({"protocol":1})"), std::string(R"({"protocol":2,"status":{}})"),
        std::string(R"({"protocol":1,"status":{}})"), std::string(R"({"protocol":1,"status":7})"),
        std::string(R"({"protocol":1,"refused":7,"status":{}})")}) {
    EXPECT_THROW(ParseAnswer(line), Error) << line;
  }
  for (const char* number : {"-1", "1.5", "1e300", "18446744073709551615", "null"}) {
    std::string strange = good;
    strange.replace(strange.find("1200"), 4, number);
    EXPECT_THROW(ParseAnswer(strange), Error) << number;
  }
  std::string unknown = good;
  unknown.replace(unknown.find("training"), 8, "dreaming");
  EXPECT_THROW(ParseAnswer(unknown), Error);
}

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
  ControlServerTest() { control_.OnEvent(RunEvent::kStep); }
  std::string path() const { return (directory_.path() / "socket").string(); }
  ControlServer& Start(uid_t uid = ::geteuid()) { return server_.emplace(path(), control_, uid); }
  void ExpectNothingAsked() {
    EXPECT_TRUE(control_.status().requested.empty());
    EXPECT_EQ(control_.display_every(), 10);
  }

  const TemporaryDirectory directory_;
  RunControl control_{{.ranks = 2, .host = "n1", .pid = 7, .version = "1", .job = ""}, 10};
  std::optional<ControlServer> server_;
};

TEST_F(ControlServerTest, AnswersWithTheStatus) {
  Start();
  const ControlAnswer answer = Ask(path(), {});
  EXPECT_EQ(answer.rejection, "");
  EXPECT_EQ(answer.status.state, RunState::kTraining);
  EXPECT_EQ(answer.status.identity.host, "n1");
}

TEST_F(ControlServerTest, LeavesOrdersToTheLoop) {
  Start();
  EXPECT_EQ(Ask(path(), {ControlCommand::kPause}).rejection, "");
  EXPECT_TRUE(control_.Look().pause);
  EXPECT_EQ(Ask(path(), {ControlCommand::kSet, 3}).status.display_every, 3);
  EXPECT_EQ(Ask(path(), {ControlCommand::kResume}).rejection, "");
  EXPECT_THAT(Ask(path(), {ControlCommand::kResume}).rejection, HasSubstr("it is not paused"));
}

TEST_F(ControlServerTest, TakesAMessageInPieces) {
  Start();
  int error = 0;
  const support::Descriptor socket = ConnectTo(path(), error);
  for (const char letter : FormatRequest({ControlCommand::kStop}) + "\n") {
    ASSERT_EQ(::send(socket.fd(), &letter, 1, 0), 1);
  }
  std::array<char, 1> first{};
  ASSERT_EQ(::recv(socket.fd(), first.data(), first.size(), 0), 1);
  EXPECT_TRUE(control_.Look().stop);
}

TEST_F(ControlServerTest, RejectsWhatIsNoMessageAndChangesNothing) {
  Start();
  for (const std::string& text :
       {std::string("pause\n"), std::string("\n"),
        std::string("{\"protocol\":9,\"do\":\"stop\"}\n"), std::string("\0\xff\n", 3),
        std::string("GET / HTTP/1.1\r\n\r\n"), std::string(kMaxRequestBytes + 1, ' '),
        FormatRequest({ControlCommand::kStop}).substr(1) + "\n",
        std::string(kMaxRequestBytes, ' ') + FormatRequest({ControlCommand::kStop}) + "\n"}) {
    EXPECT_THAT(Exchanged(path(), text),
                StartsWith(R"({"protocol":1,"refused":"the message is not understood: )"));
  }
  ExpectNothingAsked();
  EXPECT_EQ(Ask(path(), {}).rejection, "");
}

// Without its end it is no message.
TEST_F(ControlServerTest, TakesNoMessageThatIsCutOff) {
  Start();
  EXPECT_EQ(Exchanged(path(), FormatRequest({ControlCommand::kStop}), /*shuts_down=*/true), "");
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
  EXPECT_EQ(Ask(path(), {}).rejection, "");
  // With as many as there may be the next one waits until the first are sent away.
  silent.push_back(ConnectTo(path(), error));
  EXPECT_EQ(Ask(path(), {}).rejection, "");
  std::array<char, 1> none{};
  EXPECT_EQ(::recv(silent.front().fd(), none.data(), none.size(), 0), 0);
}

TEST_F(ControlServerTest, SaysNothingToAnotherUser) {
  Start(::geteuid() + 1);
  EXPECT_EQ(Exchanged(path(), FormatRequest({ControlCommand::kStop}) + "\n"), "");
  ExpectNothingAsked();
}

// The same with somebody who really is another, in a directory that they can reach.
TEST_F(ControlServerTest, SaysNothingToAProcessOfAnotherUser) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  const std::string message = FormatRequest({ControlCommand::kStop}) + "\n";
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
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  ASSERT_EQ(::write(pipe[1], &go, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ExpectNothingAsked();
}

TEST_F(ControlServerTest, IsGoneWithItsSocket) {
  Start();
  EXPECT_TRUE(fs::is_socket(path()));
  server_.reset();
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  EXPECT_THROW(Ask(path(), {}), NobodyListens);
}

TEST_F(ControlServerTest, AProcessThatWasKilledLeavesASocketAtWhichNobodyListens) {
  { const support::Descriptor left = ListenAt(path()); }
  EXPECT_THROW(Ask(path(), {}), NobodyListens);
  Start();
  EXPECT_EQ(Ask(path(), {}).rejection, "");
}

TEST_F(ControlServerTest, RejectsAPathThatIsTooLong) {
  const std::string path = (directory_.path() / std::string(200, 'x')).string();
  EXPECT_THROW(ControlServer(path, control_, ::geteuid()), Error);
  EXPECT_THROW(Ask(path, {}), Error);
}

TEST_F(ControlServerTest, OfADirectoryThatIsNotThereSaysSo) {
  EXPECT_THAT(tests::Rejection<Error>(EX_OSERR,
                                      [&] {
                                        ControlServer(
                                            (directory_.path() / "none" / "socket").string(),
                                            control_, ::geteuid());
                                      }),
              HasSubstr("/none/socket: No such file"));
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
  EXPECT_EQ(Ask(path(), {}).rejection, "");
  ExpectNothingAsked();
}

TEST(ControlClient, BelievesNoSocketOfAnotherUser) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  const TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
  const std::string path = (directory.path() / "socket").string();
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
  EXPECT_THAT(tests::Rejection<Error>(EX_NOPERM, [&] { Ask(path, {}); }),
              HasSubstr("is the socket of another user"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace trainer
