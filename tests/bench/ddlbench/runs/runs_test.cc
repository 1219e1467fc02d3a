// SPDX-License-Identifier: Apache-2.0

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/ddlbench/runs/command_runner.h"
#include "bench/ddlbench/runs/startup.h"
#include "bench/ddlbench/runs/step.h"
#include "bench/ddlbench/runs/sweep.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

class CommandRunnerTest : public ::testing::Test {
 protected:
  int Shell(const std::string& text) { return runner_.Run({"sh", "-c", text}, output_); }
  std::string Output() const { return tests::TextOf(output_); }

  CommandRunner runner_;
  const TemporaryDirectory directory_;
  const fs::path output_ = directory_ / "output";
};

TEST_F(CommandRunnerTest, HasBothOutputsAndTheExitCode) {
  EXPECT_EQ(Shell("echo one; echo two >&2; exit 7"), 7);
  EXPECT_EQ(Output(), "one\ntwo\n");
  EXPECT_EQ(Shell("true"), 0);
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(runner_.StopSignal(), 0);
}

TEST_F(CommandRunnerTest, ThereIsNothingToRead) {
  EXPECT_EQ(Shell("cat"), 0);
  EXPECT_EQ(Output(), "");
}

TEST_F(CommandRunnerTest, ASignalThatEndsItIs128AndItsNumber) {
  EXPECT_EQ(Shell("kill -9 $$"), 137);
}

TEST_F(CommandRunnerTest, HandsASignalOnAndRemembersTheFirst) {
  EXPECT_EQ(Shell("trap 'echo told; exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"),
            3);
  EXPECT_EQ(Output(), "told\n");
  EXPECT_EQ(runner_.StopSignal(), SIGTERM);
  EXPECT_EQ(Shell("trap 'exit 4' INT; kill -INT $PPID; while :; do sleep 0.05; done"), 4);
  EXPECT_EQ(runner_.StopSignal(), SIGTERM);
}

TEST_F(CommandRunnerTest, ASignalBetweenCommandsIsSeen) {
  ::kill(::getpid(), SIGUSR1);
  EXPECT_EQ(runner_.StopSignal(), SIGUSR1);
}

// The command ends only because of what is done meanwhile.
TEST_F(CommandRunnerTest, SomethingIsDoneMeanwhileAndOnceMoreAtTheEnd) {
  const fs::path made = output_.string() + ".made";
  fs::remove(made);
  std::string seen;
  const auto meanwhile = [&] {
    std::ofstream(made) << "";
    seen = Output();
  };
  EXPECT_EQ(
      runner_.Run({"sh", "-c", "until [ -e \"$0\" ]; do sleep 0.05; done; echo end; exit 5", made},
                  output_, meanwhile),
      5);
  EXPECT_EQ(seen, "end\n");
  fs::remove(made);
}

TEST_F(CommandRunnerTest, HandsASignalOnWhileSomethingIsDoneMeanwhile) {
  EXPECT_EQ(runner_.Run(
                {"sh", "-c", "trap 'exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"},
                output_, [] {}),
            3);
  EXPECT_EQ(runner_.StopSignal(), SIGTERM);
}

TEST_F(CommandRunnerTest, CommandsHaveTheSignalsThatWeHad) {
  EXPECT_EQ(Shell("grep SigBlk /proc/self/status"), 0);
  EXPECT_THAT(Output(), HasSubstr("0000000000000000"));
}

Command ShellCommand(const std::string& text, const fs::path& output = "") {
  return {.argv = {"sh", "-c", text}, .output = output, .variables = {}, .cpus = {}};
}

// The first waits for what the second makes.
TEST_F(CommandRunnerTest, SeveralRunAtOnceAndEachHasItsExitCode) {
  const fs::path made = output_.string() + ".made";
  fs::remove(made);
  const std::string name = made.string();
  EXPECT_THAT(
      runner_.RunAll({ShellCommand("until [ -e " + name + " ]; do sleep 0.02; done; exit 3"),
                      ShellCommand("echo > " + name + "; exit 4"), ShellCommand("true")}),
      ElementsAre(3, 4, 0));
  fs::remove(made);
}

TEST_F(CommandRunnerTest, ASignalGoesToAllThatRun) {
  const std::string on_signal = "trap 'exit 3' TERM; ";
  const std::string wait = "while :; do sleep 0.05; done";
  // The second gives the first time for its trap.
  EXPECT_THAT(runner_.RunAll({ShellCommand(on_signal + wait),
                              ShellCommand(on_signal + "sleep 0.3; kill -TERM $PPID; " + wait)}),
              ElementsAre(3, 3));
}

TEST_F(CommandRunnerTest, VariablesAreAddedOrReplaced) {
  ::setenv("DDLBENCH_TEST", "ours", 1);
  Command command =
      ShellCommand("echo $DDLBENCH_TEST $DDLBENCH_OTHER; env | grep -c DDLBENCH_TEST", output_);
  EXPECT_THAT(runner_.RunAll({command}), ElementsAre(0));
  EXPECT_EQ(Output(), "ours\n1\n");
  command.variables = {{"DDLBENCH_TEST", "its"}, {"DDLBENCH_OTHER", "own"}};
  EXPECT_THAT(runner_.RunAll({command}), ElementsAre(0));
  EXPECT_EQ(Output(), "its own\n1\n");
  ::unsetenv("DDLBENCH_TEST");
}

TEST_F(CommandRunnerTest, CpusAreThoseThatItIsGiven) {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &ours)) last = cpu;
  }
  Command command = ShellCommand("sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status", output_);
  command.cpus = {last};
  EXPECT_THAT(runner_.RunAll({command}), ElementsAre(0));
  EXPECT_EQ(Output(), std::to_string(last) + "\n");
}

TEST_F(CommandRunnerTest, TheOthersEndWhereOneCannotBeStarted) {
  Command missing = ShellCommand("");
  missing.argv = {"/no/such/program"};
  EXPECT_THROW(runner_.RunAll({ShellCommand("trap 'echo told; exit 1' TERM; echo begun; "
                                            "while :; do sleep 0.05; done",
                                            output_),
                               missing}),
               trainer::Error);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // none is left
}

TEST_F(CommandRunnerTest, SaysWhatCannotBeStarted) {
  EXPECT_THAT(tests::Rejection<trainer::Error>(EX_UNAVAILABLE,
                                               [&] { runner_.Run({"/no/such/program"}, output_); }),
              HasSubstr("cannot start /no/such/program: No such file"));
}

TEST_F(CommandRunnerTest, SaysWhatCannotBeWritten) {
  EXPECT_THAT(tests::Rejection<trainer::Error>(
                  EX_OSERR, [&] { runner_.Run({"true"}, "/no/such/folder/log"); }),
              HasSubstr("cannot write /no/such/folder/log"));
}

const Programs kStartupPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string StartupRejection(const std::function<void()>& call, int exit_code) {
  return tests::Rejection<trainer::Error>(exit_code, [&] { call(); });
}

TEST(CheckStartupOptions, RejectsWhatMakesNoSense) {
  StartupOptions options;
  CheckStartupOptions(options);
  options.rounds = 0;
  EXPECT_THAT(StartupRejection([&] { CheckStartupOptions(options); }, EX_USAGE),
              HasSubstr("--rounds=0"));
  options.rounds = 1;
  options.ranks = -1;
  EXPECT_THAT(StartupRejection([&] { CheckStartupOptions(options); }, EX_USAGE),
              HasSubstr("--ranks=-1"));
}

TEST(StartupCommand, HasItsRanksWhereTheyAreGiven) {
  StartupOptions options;
  EXPECT_THAT(StartupCommand(options, kStartupPrograms, {}), ElementsAre("/bin/ddlrun", "true"));
  options.ranks = 4;
  options.ddlrun = {"--tcp"};
  EXPECT_THAT(StartupCommand(options, kStartupPrograms, {"--dry-run"}),
              ElementsAre("/bin/ddlrun", "-n", "4", "--tcp", "--dry-run", "true"));
}

TEST(BareStartOf, IsTheSrunWithoutTheShimAndTheListOfHosts) {
  const BareStart start = BareStartOf(
      "the plan\n+ /usr/bin/srun --ntasks=4 --distribution=arbitrary --nodelist=/run/TASKFILE "
      "'--comment=a b' /opt/libexec/ddlrun-rank -- true\n");
  EXPECT_EQ(start.by, "srun");
  ASSERT_EQ(start.commands.size(), 1U);
  EXPECT_THAT(start.commands[0].argv,
              ElementsAre("/usr/bin/srun", "--ntasks=4", "--comment=a b", "true"));
}

TEST(BareStartOf, IsAsManyProgramsAsThereAreRanksOfThisMachine) {
  const BareStart start = BareStartOf(
      "the plan\n+ /opt/libexec/ddlrun-rank --rank 0 -- true\n  (and so for the other 3)\n");
  EXPECT_EQ(start.by, "fork");
  ASSERT_EQ(start.commands.size(), 4U);
  EXPECT_THAT(start.commands[3].argv, ElementsAre("true"));
  EXPECT_EQ(BareStartOf("+ /opt/ddlrun-rank --rank 0 -- true\n").commands.size(), 1U);
}

TEST(BareStartOf, IsAnMpirunOfAsManyRanks) {
  const BareStart start = BareStartOf(
      "+ /usr/bin/mpirun --allow-run-as-root --hostfile /tmp/ddlrun.x/HOSTFILE --map-by slot -n 4 "
      "-x "
      "'DDL_OPTIONS=-mode p:2x1x1x1 ' /opt/libexec/ddlrun-rank -- true\n");
  EXPECT_EQ(start.by, "mpirun");
  ASSERT_EQ(start.commands.size(), 1U);
  EXPECT_THAT(start.commands[0].argv, ElementsAre("/usr/bin/mpirun", "--allow-run-as-root",
                                                  "--oversubscribe", "-n", "4", "true"));
  EXPECT_THAT(BareStartOf("+ mpirun -n 2 /opt/ddlrun-rank -- true\n").commands[0].argv,
              ElementsAre("mpirun", "--oversubscribe", "-n", "2", "true"));
}

TEST(BareStartOf, RejectsWhatItCannotCompareWith) {
  // Components of a heterogeneous job are sruns of their own.
  EXPECT_THAT(
      StartupRejection(
          [] { BareStartOf("+ srun /opt/ddlrun-rank -- true\n  (and so for the other 1)\n"); },
          EX_CONFIG),
      HasSubstr("several 'srun'"));
  EXPECT_THAT(StartupRejection([] { BareStartOf("the plan\n"); }, EX_UNAVAILABLE),
              HasSubstr("no command"));
}

TEST(FormatStartup, HasTheDifferencesWithinTheRounds) {
  EXPECT_EQ(FormatStartup({.bare = {10, 20, 30}, .ddlrun = {15, 28, 33}}),
            "| ms      | median    | mean      | sd        | min       | max       |\n"
            "| ------- | --------- | --------- | --------- | --------- | --------- |\n"
            "| bare    | 20.00     | 20.00     | 8.16      | 10.00     | 30.00     |\n"
            "| ddlrun  | 28.00     | 25.33     | 7.59      | 15.00     | 33.00     |\n"
            "| added   | 5.00      | 5.33      | 2.05      | 3.00      | 8.00      |\n");
}

const Programs kStepPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string StepRejection(const std::function<void(StepOptions&)>& change) {
  StepOptions options;
  change(options);
  return tests::Rejection<trainer::Error>(EX_USAGE, [&] { CheckStepOptions(options); });
}

TEST(CheckStepOptions, RejectsWhatMakesNoSense) {
  EXPECT_EQ(StepRejection([](auto&) {}), "");
  EXPECT_THAT(StepRejection([](auto& o) { o.steps = 0; }), HasSubstr("--steps=0"));
  EXPECT_EQ(StepRejection([](auto& o) { o.warmup_steps = 0; }), "");
  EXPECT_THAT(StepRejection([](auto& o) { o.warmup_steps = -1; }), HasSubstr("--warmup_steps=-1"));
  EXPECT_THAT(StepRejection([](auto& o) { o.devices = 0; }), HasSubstr("--devices=0"));
  EXPECT_THAT(StepRejection([](auto& o) { o.batch_size = 0; }), HasSubstr("--batch_size=0"));
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

const Programs kPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string RejectionOf(const std::function<void(SweepOptions&)>& change) {
  SweepOptions options{.directory = "/w"};
  change(options);
  return tests::Rejection<trainer::Error>(EX_USAGE, [&] { MatrixOf(options); });
}

std::vector<std::string> LogsOf(const std::vector<Measurement>& matrix) {
  std::vector<std::string> logs;
  for (const Measurement& one : matrix) logs.push_back(one.log.string());
  return logs;
}

TEST(MatrixOf, IsDlperfsByDefault) {
  const std::vector<Measurement> matrix = MatrixOf({.directory = "/w"});
  ASSERT_EQ(matrix.size(), 25U);
  EXPECT_EQ(matrix[0].log, "/w/bz128_fp32_synthetic/1n1g/r50_b128_fp32_1.log");
  EXPECT_EQ(matrix[0].results_dir, "/w/bz128_fp32_synthetic/1n1g/results/r50_b128_fp32_1");
  EXPECT_EQ(matrix[24].log, "/w/bz128_fp32_synthetic/4n8g/r50_b128_fp32_5.log");
  EXPECT_EQ(matrix[24].at, (Case{4, 8}));
}

TEST(MatrixOf, HasRepeatsOutermostAndADirectoryForAllButCasesAndRepeats) {
  SweepOptions options;
  options.directory = "/w";
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
    SweepOptions options{.arch = arch};
    EXPECT_THAT(MatrixOf(options)[0].log.filename().string(), HasSubstr(name));
    EXPECT_TRUE(ParseRunName(MatrixOf(options)[0].log.filename().string()));
  }
}

TEST(MatrixOf, RejectsWhatMakesNoSense) {
  EXPECT_THAT(RejectionOf([](auto& o) { o.cases = {"1n1g", "2x4"}; }), HasSubstr("--cases: '2x4'"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.cases = {"1n1g", "1n1g"}; }), HasSubstr("1n1g twice"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.cases = {}; }), HasSubstr("--cases is empty"));
  EXPECT_THAT(RejectionOf([](auto& o) {
                o.precisions = {"fp32", "fp32"};
              }),
              HasSubstr("--precision"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.precisions = {}; }), HasSubstr("--precision"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.batches = {128, 256}; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.batches = {}; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.batches = {0}; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.data = {"real"}; }), HasSubstr("--data_dir"));
  EXPECT_THAT(RejectionOf([](auto& o) {
                o.data = {"synthetic"};
                o.data_dir = "/images";
              }),
              HasSubstr("--data_dir"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.repeats = 0; }), HasSubstr("--repeats"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.at_once = 0; }), HasSubstr("--at_once"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.steps = 20; }), HasSubstr("--steps"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.only = 26; }), HasSubstr("1 to 25"));
  EXPECT_THAT(RejectionOf([](auto& o) { o.only = -1; }), HasSubstr("--only"));
  EXPECT_EQ(RejectionOf([](auto& o) { o.steps = 21; }), "");
  EXPECT_EQ(RejectionOf([](auto& o) { o.only = 25; }), "");
}

TEST(CommandOf, StartsRanksOnSoManyNodesAndGpus) {
  SweepOptions options;
  options.directory = "/w";
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
    EXPECT_THAT(CommandOf(matrix[i], options, kPrograms), Not(Contains("--data_dir=/images")));
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
  options.directory = "/my logs";
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
  options.directory = "/w";
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
