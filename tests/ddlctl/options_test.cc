// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ddlctl {
namespace {

using testing::HasSubstr;
using trainer::ControlOrder;

Options Parsed(const std::vector<std::string>& words) {
  Options options;
  support::Parse(DescribeOptions(options), words);
  return options;
}

std::string RefusalOf(const std::vector<std::string>& words) {
  try {
    Parsed(words);
  } catch (const support::UsageError& error) {
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
  for (const ControlOrder order :
       {ControlOrder::kPause, ControlOrder::kResume, ControlOrder::kCheckpoint,
        ControlOrder::kEvaluate, ControlOrder::kStop}) {
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

TEST(CtlOptions, StacksTakesNoOrdersOptions) {
  const Options stacks = Parsed({"stacks", "RUN"});
  EXPECT_EQ(stacks.command, Command::kStacks);
  EXPECT_EQ(stacks.results_dir, "RUN");
  EXPECT_FALSE(stacks.all_threads);
  EXPECT_TRUE(Parsed({"stacks", "--all-threads", "RUN"}).all_threads);
  EXPECT_THAT(RefusalOf({"stacks"}), HasSubstr("RESULTS_DIR is required"));
  EXPECT_THAT(RefusalOf({"stacks", "RUN", "--no-wait"}), HasSubstr("--no-wait"));
}

TEST(CtlOptions, CheckpointHasCommandsBelowIt) {
  const Options list = Parsed({"checkpoint", "list", "RUN"});
  EXPECT_EQ(list.command, Command::kListCheckpoints);
  EXPECT_EQ(list.model_dir, "RUN");
  EXPECT_EQ(list.request.order, std::nullopt);
  const Options verify = Parsed({"checkpoint", "verify", "RUN", "1200"});
  EXPECT_EQ(verify.command, Command::kVerifyCheckpoints);
  EXPECT_EQ(verify.step, 1200);
  EXPECT_EQ(Parsed({"checkpoint", "verify", "RUN"}).step, std::nullopt);
  const Options newest = Parsed({"checkpoint", "export", "RUN", "w.safetensors"});
  EXPECT_EQ(newest.command, Command::kExportCheckpoint);
  EXPECT_EQ(newest.step, std::nullopt);
  EXPECT_EQ(newest.export_file, "w.safetensors");
  const Options exported = Parsed({"checkpoint", "export", "RUN", "0", "w.safetensors"});
  EXPECT_EQ(exported.step, 0);
  EXPECT_EQ(exported.export_file, "w.safetensors");
}

TEST(CtlOptions, AFolderOfTheNameOfACommandIsWrittenWithItsPlace) {
  const Options order = Parsed({"checkpoint", "./list"});
  EXPECT_EQ(order.command, Command::kOrder);
  EXPECT_EQ(order.request.order, ControlOrder::kCheckpoint);
  EXPECT_EQ(order.results_dir, "./list");
  EXPECT_EQ(Parsed({"checkpoint", "list", "./list"}).model_dir, "./list");
}

TEST(CtlOptions, MisuseOfTheCommandsForFilesIsNamed) {
  EXPECT_THAT(RefusalOf({"checkpoint"}), HasSubstr("RESULTS_DIR is required"));
  EXPECT_THAT(RefusalOf({"checkpoint", "list"}), HasSubstr("DIR is required"));
  EXPECT_THAT(RefusalOf({"checkpoint", "RUN", "list"}),
              HasSubstr("checkpoint list DIR is the order of the words"));
  EXPECT_THAT(RefusalOf({"checkpoint", "verify", "RUN", "-1"}), HasSubstr("-1"));
  EXPECT_THAT(RefusalOf({"checkpoint", "verify", "RUN", "x"}),
              HasSubstr("needs the number of a step, not 'x'"));
  EXPECT_THAT(RefusalOf({"checkpoint", "export", "RUN"}),
              HasSubstr("FILE is required: DIR [STEP] FILE.safetensors"));
  EXPECT_THAT(RefusalOf({"checkpoint", "export", "RUN", "12"}),
              HasSubstr("FILE needs a name that ends in .safetensors, not '12'"));
  EXPECT_THAT(RefusalOf({"checkpoint", "export", "RUN", "w.safetensors", "12"}),
              HasSubstr("FILE needs a name that ends in .safetensors, not '12'"));
  EXPECT_THAT(RefusalOf({"checkpoint", "export", "RUN", "12x", "w.safetensors"}),
              HasSubstr("STEP needs the number of a step, not '12x'"));
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
