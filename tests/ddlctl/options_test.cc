// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace ddlctl {
namespace {

using testing::HasSubstr;
using trainer::ControlOrder;

Options Parsed(std::vector<std::string> words) {
  CLI::App app("", "ddlctl");
  Options options;
  DescribeOptions(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(std::move(words));
  return options;
}

std::string RefusalOf(const std::vector<std::string>& words) {
  try {
    Parsed(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "none";
}

TEST(CtlOptions, StatusAndWatchAskForNothing) {
  const Options status = Parsed({"status", "--json", "RUN"});
  EXPECT_EQ(status.command, Command::kStatus);
  EXPECT_EQ(status.request.order, std::nullopt);
  EXPECT_EQ(status.results_dir, "RUN");
  EXPECT_TRUE(status.as_json);
  const Options watch = Parsed({"watch", "RUN", "--interval=0.5", "--job=17"});
  EXPECT_EQ(watch.command, Command::kWatch);
  EXPECT_EQ(watch.interval, 0.5);
  EXPECT_EQ(watch.job, "17");
}

TEST(CtlOptions, EachOrderHasACommand) {
  for (const ControlOrder order : {ControlOrder::kPause, ControlOrder::kResume,
                                   ControlOrder::kCheckpoint, ControlOrder::kStop}) {
    const Options options = Parsed({std::string(NameOf(order)), "RUN", "--no-wait"});
    EXPECT_EQ(options.command, Command::kOrder);
    EXPECT_EQ(options.request.order, order);
    EXPECT_TRUE(options.no_wait);
    EXPECT_FALSE(Parsed({std::string(NameOf(order)), "RUN"}).no_wait);
  }
  const Options set = Parsed({"set", "display_every=5", "RUN"});
  EXPECT_EQ(set.request.order, ControlOrder::kSet);
  EXPECT_EQ(set.request.display_every, 5);
  EXPECT_EQ(set.results_dir, "RUN");
}

// As the call on the other node has it behind what the user wrote.
TEST(CtlOptions, OfSrunTheLastCounts) {
  EXPECT_EQ(Parsed({"status", "RUN"}).srun, "auto");
  EXPECT_EQ(Parsed({"status", "--srun=auto", "RUN", "--srun=never"}).srun, "never");
}

TEST(CtlOptions, MisuseIsNamed) {
  EXPECT_THAT(RefusalOf({"status"}), HasSubstr("RESULTS_DIR is required"));
  EXPECT_THAT(RefusalOf({"set", "RUN"}), HasSubstr("needs display_every=N, N from 1, not 'RUN'"));
  for (const char* setting : {"display_every=0", "display_every=", "display_every=5x",
                              "display_every=-1", "display_every=2147483648", "every=5"}) {
    EXPECT_THAT(RefusalOf({"set", setting, "RUN"}),
                HasSubstr("needs display_every=N, N from 1, not '" + std::string(setting) + "'"));
  }
  for (const char* interval : {"0", "-1", "x", "3601", "nan"}) {
    EXPECT_THAT(RefusalOf({"watch", "RUN", "--interval", interval}),
                HasSubstr("needs 0.1 to 3600 seconds"))
        << interval;
  }
  for (const char* job : {"", "--all", "1 2"}) {
    EXPECT_THAT(RefusalOf({"status", "RUN", "--job=" + std::string(job)}),
                testing::Not(testing::StrEq("none")))
        << job;
  }
  EXPECT_THAT(RefusalOf({"status", "RUN", "--job=abc"}), HasSubstr("needs the number of a job"));
  EXPECT_THAT(RefusalOf({"status", "RUN", "--srun=always"}), HasSubstr("always"));
}

}  // namespace
}  // namespace ddlctl
