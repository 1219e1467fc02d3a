// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/cli/launcher_arguments.h"
#include "launcher/cli/quoting.h"
#include "launcher/cli/user_program.h"
#include "support/quoting.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAreArray;

TEST(SplitOnWhitespace, UndoesQuoteCommand) {
  const std::vector<std::string> words = {
      "plain", "two words", "", "it's", "\"quoted\"", "a\\b", "tab\there", "new\nline", "$x `y` *"};
  EXPECT_EQ(SplitOnWhitespace(support::QuoteCommand(words)), words);
}

TEST(SplitOnWhitespace, SplitsAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(SplitOnWhitespace("  -x EGO_TOP\t--mca btl 'a b' c\"d e\"f \\ g "),
              ElementsAre("-x", "EGO_TOP", "--mca", "btl", "a b", "cd ef", " g"));
  EXPECT_THAT(SplitOnWhitespace(""), ElementsAre());
}

TEST(SplitOnWhitespace, RejectsAnOpenQuote) {
  EXPECT_THROW(SplitOnWhitespace("a 'b"), LaunchError);
  EXPECT_THROW(SplitOnWhitespace("a \"b"), LaunchError);
}

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

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(DescribeHostAsProgram, KnowsAHostBehindABlank) {
  EXPECT_EQ(DescribeHostAsProgram("n1", Words("n2 n3 python")),
            "'n2' behind -H n1 would be the program: write hosts with commas, -H n1,n2");
  for (const auto& [hosts, program] :
       std::vector<std::pair<std::string, std::string>>{{"a,gpu01:2", "gpu02:2 python"},
                                                        {"a1,m2,n3", "n4 python"},
                                                        {"n[1-2]", "n3 python"},
                                                        {"n1.a.org", "n2.a.org x"},
                                                        {"localhost", "localhost x"},
                                                        {"localhost", "localhost:2 x"}}) {
    EXPECT_NE(DescribeHostAsProgram(hosts, Words(program)), "") << hosts << " " << program;
  }
  for (const auto& [hosts, program] :
       std::vector<std::pair<std::string, std::string>>{{"n1", ""},
                                                        {"n1", "python n2"},
                                                        {"n1", "./n2"},
                                                        {"gpu1", "gpu"},
                                                        {"10.0.0.1", "10 x"},
                                                        {"n1,m2", "n2 x"}}) {
    EXPECT_EQ(DescribeHostAsProgram(hosts, Words(program)), "") << hosts << " " << program;
  }
}

TEST(ProgramOnStdin, IsWhatNoArgumentGives) {
  for (const char* text :
       {"python3 -", "python", "/usr/bin/python3.11 -u -", "python3 -u", "bash", "bash -s",
        "bash -eus 1 2", "sh -", "/bin/sh -s x", "zsh -x", "ksh -e"}) {
    EXPECT_TRUE(ReadsProgramFromStdin(Words(text))) << text;
  }
}

TEST(ProgramOnStdin, IsNotLookedForWhereThereMayBeAnother) {
  for (const char* text : {"", "python3 -c x", "python3 -m train -", "python3 train.py -",
                           "bash x -", "bash -c :", "bash -lc :", "python3 --version", "python3 -V",
                           "python3 -W x", "bash --rcfile x", "bash -o errexit x", "perl",
                           "pythonic", "env python3 -", "cat -", "./train -"}) {
    EXPECT_FALSE(ReadsProgramFromStdin(Words(text))) << text;
  }
}

}  // namespace
}  // namespace launcher
