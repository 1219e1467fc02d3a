// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const Programs kStepPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string StepRefusal(const std::function<void(StepOptions&)>& change) {
  StepOptions options;
  change(options);
  try {
    CheckStepOptions(options);
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "";
}

TEST(CheckStepOptions, RefusesWhatMakesNoSense) {
  EXPECT_EQ(StepRefusal([](auto&) {}), "");
  EXPECT_THAT(StepRefusal([](auto& o) { o.steps = 0; }), HasSubstr("--steps=0"));
  EXPECT_EQ(StepRefusal([](auto& o) { o.warmup_steps = 0; }), "");
  EXPECT_THAT(StepRefusal([](auto& o) { o.warmup_steps = -1; }), HasSubstr("--warmup_steps=-1"));
  EXPECT_THAT(StepRefusal([](auto& o) { o.devices = 0; }), HasSubstr("--devices=0"));
  EXPECT_THAT(StepRefusal([](auto& o) { o.batch_size = 0; }), HasSubstr("--batch_size=0"));
}

TEST(StepCommand, TrainsWarmUpAndSteps) {
  StepOptions options;
  EXPECT_THAT(StepCommand(options, kStepPrograms, "/w/results"),
              ElementsAre("/bin/ddlrun", "-n", "1", "/bin/ddltraind", "--mode=training_benchmark",
                          "--arch=resnet50", "--iter_unit=batch", "--num_iter=70",
                          "--warmup_steps=20", "--display_every=1", "--batch_size=64",
                          "--precision=fp32", "--results_dir=/w/results"));
  options.devices = 4;
  options.ddlrun = {"--tcp"};
  options.data_dir = "/images";
  options.trainer = {"--image_size=64"};
  const std::vector<std::string> command = StepCommand(options, kStepPrograms, "/w");
  EXPECT_EQ(command[2], "4");
  EXPECT_EQ(command[3], "--tcp");
  EXPECT_THAT(command, Contains("--data_dir=/images"));
  EXPECT_EQ(command.back(), "--image_size=64");
}

TEST(PhasesOf, AreThoseOfTheLastLineOfATraining) {
  EXPECT_THAT(PhasesOf("2026-11-23T02:57:23Z info median of 50 steps: 93.1 images/s, 10.2 ms "
                       "(input wait 0.0, forward 3.1, backward 6.0, exposed all-reduce 0.5, "
                       "update 0.6)"),
              ElementsAre(Pair("input wait", 0.0), Pair("forward", 3.1), Pair("backward", 6.0),
                          Pair("exposed all-reduce", 0.5), Pair("update", 0.6)));
  EXPECT_THAT(PhasesOf("median of 50 steps: 93.1 images/s, 10.2 ms"), IsEmpty());
  EXPECT_THAT(PhasesOf("median of 50 steps: 93.1 images/s, 10.2 ms (forward x)"), IsEmpty());
  EXPECT_THAT(PhasesOf("the mean is 10.2 ms (forward 3.1)"), IsEmpty());
  EXPECT_THAT(PhasesOf(""), IsEmpty());
}

TEST(FormatStep, HasTheTimesOfTheStepsAndTheSharesOfThePhases) {
  // At 8 images: 100, 200 and 400 ms.
  const std::vector<RunStep> steps = {{0, 80, 7}, {1, 40, 7}, {2, 20, 7}};
  EXPECT_EQ(FormatStep(steps, 8, {{"forward", 50}, {"exposed all-reduce", 25}}),
            "| ms      | median    | mean      | sd        | min       | max       | steps |\n"
            "| ------- | --------- | --------- | --------- | --------- | --------- | ----- |\n"
            "| step    | 200.000   | 233.333   | 124.722   | 100.000   | 400.000   | 3     |\n\n"
            "images/s of all ranks: 40.00\n\n"
            "| phase              | median ms | % of step |\n"
            "| ------------------ | --------- | --------- |\n"
            "| forward            | 50.0      | 25.0      |\n"
            "| exposed all-reduce | 25.0      | 12.5      |\n");
}

}  // namespace
}  // namespace bench
