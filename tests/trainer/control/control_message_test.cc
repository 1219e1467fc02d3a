// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/trainer/control/sample_status.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(ControlRequestText, IsWhatTheReferenceSays) {
  EXPECT_EQ(FormatRequest({}), R"({"protocol":1,"do":"status"})");
  EXPECT_EQ(FormatRequest({ControlOrder::kPause}), R"({"protocol":1,"do":"pause"})");
  EXPECT_EQ(FormatRequest({ControlOrder::kStacks}), R"({"protocol":1,"do":"stacks"})");
  EXPECT_EQ(FormatRequest({ControlOrder::kSet, 5}),
            R"({"protocol":1,"do":"set","display_every":5})");
}

TEST(ControlRequestText, IsReadBack) {
  for (std::size_t i = 0; i < kControlOrders; ++i) {
    const ControlRequest request = {static_cast<ControlOrder>(i), 7};
    const ParsedRequest parsed = ParseRequest(FormatRequest(request));
    ASSERT_TRUE(parsed.request) << parsed.problem;
    EXPECT_EQ(parsed.request->order, request.order);
    EXPECT_EQ(parsed.request->display_every, request.order == ControlOrder::kSet ? 7 : 0);
  }
  const ParsedRequest status = ParseRequest(FormatRequest({}));
  ASSERT_TRUE(status.request);
  EXPECT_EQ(status.request->order, std::nullopt);
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
  const std::string request = FormatRequest({ControlOrder::kStop});
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
  EXPECT_EQ(read.median_own_seconds, said.median_own_seconds);
  ASSERT_EQ(read.loads.size(), said.loads.size());
  for (std::size_t i = 0; i < read.loads.size(); ++i) {
    EXPECT_EQ(read.loads[i].rank, said.loads[i].rank);
    EXPECT_EQ(read.loads[i].host, said.loads[i].host);
    EXPECT_EQ(read.loads[i].own_seconds, said.loads[i].own_seconds);
    EXPECT_EQ(read.loads[i].input_wait_seconds, said.loads[i].input_wait_seconds);
    EXPECT_EQ(read.loads[i].gpu_percent, said.loads[i].gpu_percent);
    EXPECT_EQ(read.loads[i].compute_mhz, said.loads[i].compute_mhz);
    EXPECT_EQ(read.loads[i].celsius, said.loads[i].celsius);
  }
  EXPECT_EQ(read.display_every, said.display_every);
  EXPECT_EQ(read.asked, said.asked);
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
  EXPECT_THAT(line,
              testing::StartsWith(R"({"protocol":1,"status":{"state":"training","step":1200,)"));
  const ControlAnswer answer = ParseAnswer(line);
  EXPECT_EQ(answer.refusal, "");
  ExpectSame(answer.status, status);
  const ControlAnswer refusal = ParseAnswer(FormatAnswer({"not \"now\"\n", status}));
  EXPECT_EQ(refusal.refusal, "not \"now\"\n");
  ExpectSame(refusal.status, status);
}

TEST(ControlAnswerText, ToStacksHasTheNumberOfTheOrder) {
  const std::string line =
      FormatAnswer({.refusal = "", .status = SampleStatus(), .stacks_order = 1764000000000000});
  EXPECT_THAT(line, testing::StartsWith(
                        R"({"protocol":1,"stacks_order":1764000000000000,"status":{"state":)"));
  EXPECT_EQ(ParseAnswer(line).stacks_order, 1764000000000000U);
  EXPECT_EQ(ParseAnswer(FormatAnswer({"", SampleStatus()})).stacks_order, 0U);
  for (const char* number : {"-1", "1.5", "\"1\"", "null"}) {
    std::string strange = line;
    strange.replace(strange.find("1764000000000000"), 16, number);
    EXPECT_THROW(ParseAnswer(strange), Error) << number;
  }
}

TEST(ControlAnswerText, WhatIsNotKnownIsNull) {
  RunStatus status;
  status.loss = INFINITY;
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
  EXPECT_TRUE(std::isnan(read.median_own_seconds));
}

// Of the most ranks that are told of, with the longest names: it goes out at once, and into the
// file of last words.
TEST(ControlAnswerText, FitsItsLimit) {
  RunStatus status = SampleStatus();
  RankLoads loads;
  loads.SetHosts(std::vector<std::string>(10000, std::string(128, 'x')));
  RankSaid said = {.input_wait_seconds = 100.0 / 3, .device = {}, .is_known = true};
  said.device.compute_mhz = said.device.celsius = said.device.busy_percent = 65534;
  loads.Add(std::vector<double>(10000, 1000.0 / 3), std::vector<RankSaid>(10000, said));
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

TEST(ControlAnswerText, OfAnyOtherKindIsRefused) {
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

}  // namespace
}  // namespace trainer
