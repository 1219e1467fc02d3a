// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Programs kPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string RefusalOf(const std::function<void(SweepOptions&)>& change) {
  SweepOptions options;
  options.folder = "/w";
  change(options);
  try {
    MatrixOf(options);
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "";
}

std::vector<std::string> LogsOf(const std::vector<Measurement>& matrix) {
  std::vector<std::string> logs;
  for (const Measurement& one : matrix) logs.push_back(one.log.string());
  return logs;
}

TEST(MatrixOf, IsDlperfsByDefault) {
  SweepOptions options;
  options.folder = "/w";
  const std::vector<Measurement> matrix = MatrixOf(options);
  ASSERT_EQ(matrix.size(), 25U);
  EXPECT_EQ(matrix[0].log, "/w/bz128_fp32_synthetic/1n1g/r50_b128_fp32_1.log");
  EXPECT_EQ(matrix[0].results_dir, "/w/bz128_fp32_synthetic/1n1g/results/r50_b128_fp32_1");
  EXPECT_EQ(matrix[24].log, "/w/bz128_fp32_synthetic/4n8g/r50_b128_fp32_5.log");
  EXPECT_EQ(matrix[24].at, (Case{4, 8}));
}

TEST(MatrixOf, HasRepeatsOutermostAndAFolderForAllButCasesAndRepeats) {
  SweepOptions options;
  options.folder = "/w";
  options.cases = {"1n1g", "2n4g"};
  options.precisions = {"fp32", "fp16"};
  options.batches = {128, 224};
  options.data_dir = "/images";
  options.repeats = 2;
  const std::vector<Measurement> matrix = MatrixOf(options);
  const std::vector<std::string> logs = LogsOf(matrix);
  ASSERT_EQ(logs.size(), 16U);
  EXPECT_THAT(std::vector(logs.begin(), logs.begin() + 9),
              ElementsAre("/w/bz128_fp32_synthetic/1n1g/r50_b128_fp32_1.log",
                          "/w/bz128_fp32_synthetic/2n4g/r50_b128_fp32_1.log",
                          "/w/bz128_fp32_real/1n1g/r50_b128_fp32_1.log",
                          "/w/bz128_fp32_real/2n4g/r50_b128_fp32_1.log",
                          "/w/bz224_fp16_synthetic/1n1g/r50_b224_fp16_1.log",
                          "/w/bz224_fp16_synthetic/2n4g/r50_b224_fp16_1.log",
                          "/w/bz224_fp16_real/1n1g/r50_b224_fp16_1.log",
                          "/w/bz224_fp16_real/2n4g/r50_b224_fp16_1.log",
                          "/w/bz128_fp32_synthetic/1n1g/r50_b128_fp32_2.log"));
  EXPECT_EQ(std::set(logs.begin(), logs.end()).size(), logs.size());
  EXPECT_FALSE(matrix[0].is_real);
  EXPECT_TRUE(matrix[2].is_real);
}

TEST(MatrixOf, NamesNetworksWithoutUnderscores) {
  for (const auto& [arch, name] : {std::pair("resnet101", "r101_b128"),
                                   {"resnet_tiny", "rtiny_b128"},
                                   {"other", "other_b128"}}) {
    SweepOptions options;
    options.arch = arch;
    EXPECT_THAT(MatrixOf(options)[0].log.filename().string(), HasSubstr(name));
    EXPECT_TRUE(ParseRunName(MatrixOf(options)[0].log.filename().string()));
  }
}

TEST(MatrixOf, RefusesWhatMakesNoSense) {
  EXPECT_THAT(RefusalOf([](auto& o) { o.cases = {"1n1g", "2x4"}; }), HasSubstr("--cases: '2x4'"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.cases = {"1n1g", "1n1g"}; }), HasSubstr("1n1g twice"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.cases = {}; }), HasSubstr("--cases is empty"));
  EXPECT_THAT(RefusalOf([](auto& o) {
                o.precisions = {"fp32", "fp32"};
              }),
              HasSubstr("--precision"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.precisions = {}; }), HasSubstr("--precision"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.batches = {128, 256}; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.batches = {}; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.batches = {0}; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.data = {"real"}; }), HasSubstr("--data_dir"));
  EXPECT_THAT(RefusalOf([](auto& o) {
                o.data = {"synthetic"};
                o.data_dir = "/images";
              }),
              HasSubstr("--data_dir"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.repeats = 0; }), HasSubstr("--repeats"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.at_once = 0; }), HasSubstr("--at_once"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.steps = 20; }), HasSubstr("--steps"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.only = 26; }), HasSubstr("1 to 25"));
  EXPECT_THAT(RefusalOf([](auto& o) { o.only = -1; }), HasSubstr("--only"));
  EXPECT_EQ(RefusalOf([](auto& o) { o.steps = 21; }), "");
  EXPECT_EQ(RefusalOf([](auto& o) { o.only = 25; }), "");
}

TEST(CommandOf, StartsRanksOnSoManyNodesAndGpus) {
  SweepOptions options;
  options.folder = "/w";
  options.cases = {"2n8g"};
  options.ddlrun = {"--tcp"};
  options.trainer = {"--image_size=64"};
  EXPECT_THAT(
      CommandOf(MatrixOf(options)[0], options, kPrograms),
      ElementsAre("/bin/ddlrun", "-n", "16", "--ranks-per-node", "8", "--tcp", "/bin/ddltraind",
                  "--mode=training_benchmark", "--arch=resnet50", "--iter_unit=batch",
                  "--num_iter=120", "--warmup_steps=20", "--batch_size=128",
                  "--results_dir=/w/bz128_fp32_synthetic/2n8g/results/r50_b128_fp32_1",
                  "--precision=fp32", "--image_size=64"));
}

TEST(CommandOf, HasDlperfsOptionsForEachPrecision) {
  SweepOptions options;
  options.cases = {"1n1g"};
  options.precisions = {"fp32", "tf32", "fp16", "bf16", "amp"};
  options.data_dir = "/images";
  const std::vector<Measurement> matrix = MatrixOf(options);
  std::vector<std::string> ends;
  for (std::size_t i = 0; i < 10; i += 2) {
    const std::vector<std::string> command = CommandOf(matrix[i + 1], options, kPrograms);
    std::string end;
    for (std::size_t k = 13; k < command.size(); ++k) end += command[k] + " ";
    ends.push_back(end);
    EXPECT_THAT(CommandOf(matrix[i], options, kPrograms),
                Not(testing::Contains("--data_dir=/images")));
  }
  EXPECT_THAT(ends, ElementsAre("--precision=fp32 --data_dir=/images ",
                                "--precision=tf32 --data_dir=/images ",
                                "--precision=fp16 --use_static_loss_scaling --loss_scale=128 "
                                "--data_dir=/images ",
                                "--precision=bf16 --use_static_loss_scaling --loss_scale=128 "
                                "--data_dir=/images ",
                                "--precision=fp32 --use_tf_amp --use_static_loss_scaling "
                                "--loss_scale=128 --data_dir=/images "));
}

TEST(JobScript, GivesATaskTheWholeCommandQuoted) {
  SweepOptions options;
  options.folder = "/my logs";
  options.cases = {"1n1g", "2n2g"};
  options.precisions = {"fp32", "fp16"};
  options.batches = {8, 16};
  options.data = {"real"};
  options.data_dir = "/$HOME";
  options.ddlrun = {"--tcp"};
  options.trainer = {"--backend=cpu", "--export_dir=a b"};
  EXPECT_EQ(JobScript(options, kPrograms),
            "#!/bin/bash\n"
            "# Made by ddlbench sweep --submit: a task of the array makes one measurement.\n"
            "exec /bin/ddlbench sweep --cases=1n1g,2n2g --precision=fp32,fp16 --arch=resnet50 "
            "--repeats=5 --steps=120 --batch_size=8,16 --data=real '--data_dir=/$HOME' "
            "--ddlrun=--tcp --only=\"$SLURM_ARRAY_TASK_ID\" '/my logs' -- --backend=cpu "
            "'--export_dir=a b'\n");
}

TEST(SubmitCommand, AsksForTheLargestNumbersAndLetsTheUsersOptionsCount) {
  SweepOptions options;
  options.folder = "/w";
  options.cases = {"4n1g", "2n8g"};
  options.at_once = 3;
  options.sbatch = {"--time=1:00:00", "--gres=gpu:v100:8"};
  EXPECT_THAT(SubmitCommand(options, 10, "/w/sweep.sbatch"),
              ElementsAre("sbatch", "--job-name=ddlbench", "--array=1-10%3", "--nodes=4",
                          "--gres=gpu:8", "--output=/w/slurm-%A_%a.out", "--time=1:00:00",
                          "--gres=gpu:v100:8", "/w/sweep.sbatch"));
}

}  // namespace
}  // namespace bench
