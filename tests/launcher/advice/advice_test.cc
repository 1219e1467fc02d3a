// SPDX-License-Identifier: Apache-2.0

#include "launcher/advice/advice.h"

#include "launcher/base/error.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

AdviceBasis OfBede() {
  AdviceBasis basis;
  basis.requested =
      ParseTrainingRequest({"--batch_size=256", "--precision=fp16", "--num_iter=50",
                            "--lr_init=0.256", "--lr_warmup_epochs=8", "--use_cosine_lr"});
  basis.job = {.nodes = 4, .ranks = 16, .gpus_per_node = 4};
  basis.machine.gpu = "V100-SXM2-32GB";
  basis.machine.adapters = 2;
  basis.site = "bede.yaml";
  return basis;
}

// The words of the line for so many nodes and ranks.
std::vector<std::string> RowOf(const std::string& text, const std::string& nodes,
                               const std::string& ranks) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.size() > 2 && words[0] == nodes && words[1] == ranks) return words;
  }
  return {};
}

std::string RejectionOf(const AdviceBasis& basis) {
  return tests::Rejection<LaunchError>([&] { AdviceText(basis); });
}

TEST(Advice, SaysWhatTheBatchTakesOfTheGpu) {
  AdviceBasis basis = OfBede();
  EXPECT_THAT(AdviceText(basis),
              HasSubstr("256 images of a GPU, as --batch_size says; some 12.3 of the 32 GB of a "
                        "V100-SXM2-32GB, the largest is about 736 (computed; ddltraind --dry_run "
                        "on a node knows)"));
  basis.machine.gpu = "V100";
  basis.requested =
      ParseTrainingRequest({"--batch_size=512", "--precision=fp32", "--accumulate=2"});
  EXPECT_THAT(
      AdviceText(basis),
      HasSubstr("some 45.4 of the 16 GB of a V100: DOES NOT FIT, the largest is about 160; as "
                "many images in a step: --batch_size=128 --accumulate=8 (computed"));
  basis.requested = ParseTrainingRequest({"--batch_size=509", "--precision=fp32"});
  EXPECT_THAT(AdviceText(basis), HasSubstr("--batch_size=1 --accumulate=509 (computed"));
}

TEST(Advice, TakesABatchThatFitsWhereNoneIsSaid) {
  AdviceBasis basis = OfBede();
  basis.requested = ParseTrainingRequest({"--precision=fp16"});
  EXPECT_THAT(AdviceText(basis), HasSubstr("256 images of a GPU, assumed, for --batch_size is"));
  basis.machine.gpu = "V100-8GB";
  EXPECT_THAT(AdviceText(basis), HasSubstr("144 images of a GPU, assumed, for --batch_size is"));
}

TEST(Advice, DoesNotGuessTheMemoryOfAGpuThatIsNotKnown) {
  AdviceBasis basis = OfBede();
  basis.machine.gpu = "MI250X";
  basis.images_per_s = 1000;
  EXPECT_THAT(AdviceText(basis), AllOf(HasSubstr("says; some 12.3 GB of a GPU (computed;"),
                                       Not(HasSubstr("the largest is"))));
}

TEST(Advice, HasALineForEachNumberOfNodes) {
  const std::string text = AdviceText(OfBede());
  const std::vector<std::string> one = RowOf(text, "1", "4");
  ASSERT_GE(one.size(), 7u) << text;
  EXPECT_EQ(one[2], "1024");  // images of a step
  EXPECT_EQ(one[3], "1.024");
  EXPECT_NEAR(std::stod(one[4]), 4 * 1270, 60);
  for (const auto& [nodes, ranks] : {std::pair("2", "8"), {"4", "16"}, {"8", "32"}, {"16", "64"}}) {
    EXPECT_FALSE(RowOf(text, nodes, ranks).empty()) << text;
  }
  EXPECT_THAT(text, HasSubstr("<- this job"));
}

// 50 epochs of 1,281,167 images at 16 x 1,270 images/s are 3,152 s, 14 GPU-hours, 4.2 kWh.
TEST(Advice, CountsTimeGpuHoursAndEnergy) {
  const std::string text = AdviceText(OfBede());
  EXPECT_THAT(text, AllOf(HasSubstr("53 min        14.0       4.2"), HasSubstr("3 h 30 min")));
}

TEST(Advice, SaysWhatIsAssumedAndWhereTheRestIsFrom) {
  EXPECT_THAT(AdviceText(OfBede()),
              AllOf(HasSubstr("V100-SXM2-32GB (bede.yaml)"), HasSubstr("as --batch_size says"),
                    HasSubstr("4 GPUs per node, nvlink2 (120 GB/s) inside (assumed)"),
                    HasSubstr("cosine"), HasSubstr("GPUs at their limit of 300 W")));
  EXPECT_THAT(AdviceText({}),
              AllOf(HasSubstr("V100 (assumed: no site file says which GPU)"),
                    HasSubstr("assumed, for --batch_size is missing"), Not(HasSubstr("this job"))));
}

TEST(Advice, WarnsOfBatchesWithoutARecipe) {
  const std::string text = AdviceText(OfBede());
  const std::string warning = "no recipe is published for SGD beyond 8192 images";
  EXPECT_GT(text.find(warning), text.find("16384"));
  EXPECT_EQ(text.find(warning), text.rfind(warning));
}

TEST(Advice, LeavesTheRateToARecipe) {
  AdviceBasis basis = OfBede();
  basis.requested.recipe = "mlperf";
  const std::string text = AdviceText(basis);
  EXPECT_EQ(RowOf(text, "16", "64")[3], "recipe");
  EXPECT_THAT(text, AllOf(HasSubstr("learning rate  --recipe=mlperf has one for each global batch"),
                          HasSubstr("recipe         LARS by MLPerf's reference convergence points"),
                          Not(HasSubstr("expect a lower top-1"))));
}

TEST(Advice, ScalesTheRateAsIsAsked) {
  AdviceBasis basis = OfBede();  // 0.256 at 256 images
  basis.requested.lr_scaling = "sqrt";
  EXPECT_EQ(RowOf(AdviceText(basis), "4", "16")[3], "1.024");
  EXPECT_THAT(AdviceText(basis), HasSubstr("lr_init 0.256 x the root of (global batch / 256)"));
  basis.requested.lr_scaling = "none";
  EXPECT_EQ(RowOf(AdviceText(basis), "4", "16")[3], "0.256");
}

TEST(Advice, ShowsAJobOfUnevenNodes) {
  AdviceBasis basis = OfBede();
  basis.job = {.nodes = 2, .ranks = 6, .gpus_per_node = 4};
  const std::string text = AdviceText(basis);
  EXPECT_EQ(RowOf(text, "2", "6")[2], "1536");
  EXPECT_EQ(RowOf(text, "2", "8")[2], "2048");
}

TEST(Advice, TakesTheSpeedOfAGpuThatIsGiven) {
  AdviceBasis basis = OfBede();
  basis.machine = {};
  basis.images_per_s = 500;
  const std::string text = AdviceText(basis);
  EXPECT_THAT(text, AllOf(HasSubstr("500 images/s in fp16: as --advise says"),
                          HasSubstr("energy         not known for this GPU")));
  EXPECT_NEAR(std::stod(RowOf(text, "1", "4")[4]), 2000, 30);
}

TEST(Advice, CountsStepsAndBatchesOfAStep) {
  AdviceBasis basis = OfBede();
  basis.requested.counts_epochs = false;
  basis.requested.num_iter = 1000;
  basis.requested.accumulate = 2;
  const std::string text = AdviceText(basis);
  EXPECT_EQ(RowOf(text, "1", "4")[2], "2048");
  EXPECT_THAT(text, AllOf(HasSubstr("1000 steps"), HasSubstr("2 batches for one update")));
  EXPECT_THAT(text, HasSubstr("7 min"));  // of 2 x 256 / 1270 s
}

TEST(Advice, IsBoundByTheFileSystemWhereImagesAreRead) {
  AdviceBasis basis = OfBede();
  basis.machine.file_system_gbs = 1;
  EXPECT_THAT(AdviceText(basis), Not(HasSubstr(" input\n")));
  basis.requested.has_data = true;
  EXPECT_THAT(AdviceText(basis), AllOf(HasSubstr(" input\n"), HasSubstr("1 GB/s for all nodes")));
}

TEST(Advice, RejectsWhatItKnowsNothingOf) {
  AdviceBasis basis = OfBede();
  basis.requested.mode = "evaluate";
  EXPECT_EQ(RejectionOf(basis),
            "--advise: ddltraind --mode=evaluate trains nothing; leave out --advise");
  basis = OfBede();
  basis.requested.arch = "resnet101";
  EXPECT_EQ(RejectionOf(basis),
            "--advise knows resnet50 alone, not --arch=resnet101; ddlbench sweep measures it");
  basis = OfBede();
  basis.machine.gpu = "RTX 9090";
  EXPECT_EQ(RejectionOf(basis),
            "--advise: how fast is one RTX 9090 in fp16? Give its images/s: --advise=400");
}

TEST(TrainingRequest, HasTheDefaultsOfDdltraind) {
  const TrainingRequest requested = ParseTrainingRequest({});
  EXPECT_EQ(requested.batch, 0);
  EXPECT_EQ(requested.precision, "fp32");
  EXPECT_EQ(requested.lr_init, 0.1);
  EXPECT_EQ(requested.num_iter, 1);
  EXPECT_TRUE(requested.counts_epochs);
  EXPECT_FALSE(requested.cosine);
}

TEST(TrainingRequest, IsReadFromTheCommandLineOfBede) {
  const TrainingRequest requested = ParseTrainingRequest(
      {"--mode=train_and_evaluate", "--iter_unit=epoch", "--num_iter=50", "--batch_size=256",
       "--warmup_steps=100", "--use_cosine", "--label_smoothing", "0.1", "--lr_init=0.256",
       "--lr_warmup_epochs=8", "--momentum=0.875", "--weight_decay=3.0517578125e-05", "--data_dir",
       "/data", "--use_cosine_lr", "--precision=fp16", "--reduce_precision=16bit", "--accumulate",
       "2"});
  EXPECT_EQ(requested.batch, 256);
  EXPECT_EQ(requested.num_iter, 50);
  EXPECT_EQ(requested.lr_init, 0.256);
  EXPECT_EQ(requested.warmup_epochs, 8);
  EXPECT_EQ(requested.precision, "fp16");
  EXPECT_EQ(requested.accumulate, 2);
  EXPECT_TRUE(requested.cosine);
  EXPECT_TRUE(requested.has_data);
  EXPECT_TRUE(requested.half_sums);
}

TEST(TrainingRequest, KnowsSwitches) {
  EXPECT_EQ(ParseTrainingRequest({"--use_tf_amp"}).precision, "fp16");
  EXPECT_FALSE(ParseTrainingRequest({"--use_cosine_lr", "--nouse_cosine_lr"}).cosine);
  EXPECT_FALSE(ParseTrainingRequest({"--use_cosine_lr=False"}).cosine);
  EXPECT_EQ(ParseTrainingRequest({"--recipe", "mlperf"}).recipe, "mlperf");
  EXPECT_EQ(ParseTrainingRequest({"--lr_scaling=sqrt"}).lr_scaling, "sqrt");
  EXPECT_EQ(ParseTrainingRequest({"--lr_schedule=polynomial"}).lr_schedule, "polynomial");
  EXPECT_FALSE(ParseTrainingRequest({"--iter_unit", "batch"}).counts_epochs);
}

TEST(TrainingRequest, RejectsANumberThatIsNone) {
  for (const char* const word : {"--batch_size=many", "--batch_size=0", "--batch_size=1e400",
                                 "--num_iter=-1", "--lr_init=nan", "--accumulate=0"}) {
    EXPECT_THROW(ParseTrainingRequest({word}), LaunchError) << word;
  }
}

}  // namespace
}  // namespace launcher
