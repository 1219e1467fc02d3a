// SPDX-License-Identifier: Apache-2.0

#include <spdlog/logger.h>

#include <memory>

#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "trainer/outputs/run_outputs.h"

namespace trainer {
namespace {

TEST(DescribeLaunch, SaysWhatALaunchWasMadeWith) {
  launcher::RankInfo rank{.world_size = 8, .node_count = 2};
  RunMetadata items = {.version = "0.1.0",
                       .arguments = {"--mode=train", "--data_dir=my images"},
                       .backend = "cpu: oneDNN 2.6.3",
                       .communication = "MPI (Open MPI v4.1.4), 8 ranks",
                       .job = ""};
  const LogFields fields = DescribeLaunch(items, rank, "gpu025");
  EXPECT_EQ(PythonJson(fields),
            "{\"program\": \"ddltraind 0.1.0\", "
            "\"command\": \"ddltraind --mode=train '--data_dir=my images'\", \"ranks\": 8, "
            "\"nodes\": 2, \"host\": \"gpu025\", \"backend\": \"cpu: oneDNN 2.6.3\", "
            "\"communication\": \"MPI (Open MPI v4.1.4), 8 ranks\"}");
  items.job = "4711";
  EXPECT_EQ(DescribeLaunch(items, rank, "gpu025").back(),
            (std::pair<std::string, LogValue>("job", "4711")));
}

std::map<std::string, LogValue> ParametersOf(std::vector<std::string> arguments) {
  arguments.emplace_back("--batch_size=8");
  const LogFields fields = LoggedParameters(ParseOptions(arguments).options);
  return {fields.begin(), fields.end()};
}

TEST(LoggedParameters, HaveTheTypesThatTheirValuesHave) {
  const auto parameters = ParametersOf({"--use_cosine_lr", "--data_dir=/data/1"});
  EXPECT_EQ(parameters.at("batch_size"), LogValue(std::int64_t{8}));
  EXPECT_EQ(parameters.at("lr_init"), LogValue(0.1));
  EXPECT_EQ(parameters.at("use_cosine_lr"), LogValue(true));
  EXPECT_EQ(parameters.at("deterministic"), LogValue(false));
  EXPECT_EQ(parameters.at("mode"), LogValue("train_and_evaluate"));
  EXPECT_EQ(parameters.at("data_dir"), LogValue("/data/1"));
  EXPECT_EQ(parameters.at("seed"), LogValue(std::int64_t{1}));
  const auto large = ParametersOf({"--seed=18446744073709551615"});
  EXPECT_EQ(large.at("seed"), LogValue(std::uint64_t{18446744073709551615U}));
}

TEST(LoggedParameters, LeaveOutWhatHasNoValueAndOtherNamesOfOptions) {
  const auto parameters = ParametersOf({"--amp"});
  EXPECT_EQ(parameters.count("data_dir"), 0U);
  EXPECT_EQ(parameters.count("amp"), 0U);
  EXPECT_EQ(parameters.at("precision"), LogValue("fp16"));
}

std::string RejectionToPrepare(const TrainConfig& config) {
  return tests::Rejection<Error>(
      EX_OSERR, [&] { PrepareDirectories(config, {}, std::make_shared<spdlog::logger>("test")); });
}

TEST(PrepareDirectories, RejectsADirectoryOfCheckpointsThatCannotBeWritten) {
  const TemporaryDirectory scratch;
  TrainConfig config;
  config.results_dir = scratch.path() / "run";
  fs::create_directory(config.results_dir);
  const fs::path checkpoints = config.results_dir / "checkpoints";
  fs::create_symlink("/nowhere", checkpoints);
  EXPECT_EQ(RejectionToPrepare(config),
            "cannot make the directory '" + checkpoints.string() + "': " + checkpoints.string() +
                " is a link to /nowhere, which is not there (make that directory); give another "
                "--model_dir");
  fs::remove(checkpoints);
  fs::create_symlink("/proc", checkpoints);  // where nobody can make a file
  EXPECT_THAT(RejectionToPrepare(config), EndsWith("or give another --model_dir"));
  fs::remove(checkpoints);
  fs::create_directory(checkpoints);
  PrepareDirectories(config, {}, std::make_shared<spdlog::logger>("test"));
  EXPECT_TRUE(fs::is_empty(checkpoints));
}

}  // namespace
}  // namespace trainer
