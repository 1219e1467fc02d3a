// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/launcher_arguments.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(IbmArguments, LeaveThoseOfOpenMpiAlone) {
  const std::vector<std::string> words = {"-x", "EGO_TOP", "--mca", "btl", "tcp,self", "-gpus"};
  const MpiArguments arguments = TranslateIbmArguments(words);
  EXPECT_EQ(arguments.words, words);
  EXPECT_THAT(arguments.warnings, IsEmpty());
}

TEST(IbmArguments, WithoutInfinibandBecomeThoseOfTcp) {
  for (const std::string word : {"-pami_noib", "--pami_noib", "-tcp", "-TCP"}) {
    const MpiArguments arguments = TranslateIbmArguments({"-x", "A", word});
    std::vector<std::string> expected = {"-x", "A"};
    expected.insert(expected.end(), NoInfinibandArguments().begin(), NoInfinibandArguments().end());
    EXPECT_THAT(arguments.words, ElementsAreArray(expected));
    EXPECT_THAT(
        arguments.warnings,
        ElementsAre(AllOf(StartsWith("[WARN DDL-22-1] --mpiarg '" + word + "' is of IBM's mpirun"),
                          HasSubstr("replaced by '--mca pml ob1 --mca btl ^openib,ofi,uct'"))));
  }
}

TEST(IbmArguments, WithoutGpuDirectBecomeUcxsSetting) {
  const MpiArguments arguments = TranslateIbmArguments({"-disable_gdr"});
  EXPECT_THAT(arguments.words, ElementsAre("-x", "UCX_IB_GPU_DIRECT_RDMA=no"));
  EXPECT_THAT(arguments.warnings, ElementsAre(AllOf(StartsWith("[WARN DDL-22-1]"),
                                                    HasSubstr("NCCL_NET_GDR_LEVEL=LOC"))));
}

TEST(IbmArguments, ThatMeanNothingHereAreLeftOut) {
  for (const std::string word :
       {"-gpu", "-async", "-prot", "-pami", "-PAMI", "-mxm", "-MXM", "-ibv", "-IBV"}) {
    const MpiArguments arguments = TranslateIbmArguments({word, "-n"});
    EXPECT_THAT(arguments.words, ElementsAre("-n"));
    EXPECT_THAT(arguments.warnings, ElementsAre(StartsWith("[WARN DDL-22-2] --mpiarg '" + word +
                                                           "' is of IBM's mpirun: left out; ")));
  }
}

TEST(IbmArguments, TakeTheirValueAlong) {
  const MpiArguments arguments = TranslateIbmArguments({"-verbsbypass", "3.1", "-gpu"});
  EXPECT_THAT(arguments.words, IsEmpty());
  EXPECT_THAT(arguments.warnings,
              ElementsAre(HasSubstr("--mpiarg '-verbsbypass 3.1' is of"), HasSubstr("'-gpu'")));
  EXPECT_THAT(TranslateIbmArguments({"-verbsbypass"}).warnings, SizeIs(1));
}

TEST(SplitMpiArguments, MakesVariablesOfWhatMpirunWouldSet) {
  const SplitArguments split =
      SplitMpiArguments({"-x", "A=1=2", "--quiet", "--mca", "pml", "ob1", "-mca", "btl", "^uct",
                         "-x", "B", "--x", "C=", "--timeout", "9", "--mca", "pml", "ucx"});
  EXPECT_THAT(split.variables,
              ElementsAre(Pair("A", "1=2"), Pair("C", ""), Pair("OMPI_MCA_btl", "^uct"),
                          Pair("OMPI_MCA_pml", "ucx")));
  EXPECT_THAT(split.rest, ElementsAre("--quiet", "--timeout", "9"));
}

TEST(SplitMpiArguments, LeavesWhatIsCutOff) {
  EXPECT_THAT(SplitMpiArguments({"-x"}).rest, ElementsAre("-x"));
  EXPECT_THAT(SplitMpiArguments({"--mca", "pml"}).rest, ElementsAre("--mca", "pml"));
}

TEST(LastOfEachParameter, LetsTheLaterCount) {
  EXPECT_THAT(
      LastOfEachParameter({"--mca", "pml", "ucx", "-x", "A", "-mca", "btl", "^openib", "--mca",
                           "pml", "ob1", "--timeout", "9"}),
      ElementsAre("-x", "A", "-mca", "btl", "^openib", "--mca", "pml", "ob1", "--timeout", "9"));
}

TEST(LastOfEachParameter, LeavesHalfAParameterToMpirun) {
  EXPECT_THAT(LastOfEachParameter({"--mca", "pml"}), ElementsAre("--mca", "pml"));
  EXPECT_THAT(LastOfEachParameter({}), IsEmpty());
}

}  // namespace

}  // namespace launcher
