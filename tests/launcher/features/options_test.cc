// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/cli/option_values.h"
#include "launcher/features/features.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

std::string MessageOf(const std::vector<std::string>& arguments) {
  return tests::Rejection<LaunchError>(
      EX_USAGE, [&] { ParseOptions(arguments); }, "accepted");
}

// A value that the option takes, by what its argument is called.
std::string ExampleValue(const OptionSpec& option) {
  const std::string argument = option.argument;
  if (argument == "N" || argument == "[N]" || argument.starts_with("N[")) return "2";
  if (argument == "LETTER") return "b";
  if (argument == "RANKS") return "0,2-3";
  if (argument == "RANKS:COMMAND") return "0: nice";
  if (argument.starts_with("[")) return argument.substr(1, argument.find_first_of("|]") - 1);
  if (argument.find("FILE") != std::string::npos) return "some.file";
  return argument.substr(0, argument.find_first_of("|["));
}

TEST(OptionTable, AcceptsEveryNameWithOneDashOrTwoAndBothWaysToGiveTheValue) {
  for (const OptionSpec& option : OptionTable()) {
    std::vector<std::string> names = option.names;
    names.insert(names.end(), option.also.begin(), option.also.end());
    for (const std::string& name : names) {
      for (const std::string dashes : {"-", "--"}) {
        SCOPED_TRACE(dashes + name);
        const std::string value = ExampleValue(option);
        if (option.argument[0] == '\0') {
          EXPECT_EQ(MessageOf({dashes + name, "program"}), "accepted");
          continue;
        }
        EXPECT_EQ(MessageOf({dashes + name + "=" + value, "program"}), "accepted");
        if (option.argument[0] == '[') {
          EXPECT_THAT(ParseOptions({dashes + name, "program"}).program, ElementsAre("program"));
        } else {
          EXPECT_THAT(ParseOptions({dashes + name, value, "program"}).program,
                      ElementsAre("program"));
          EXPECT_THAT(MessageOf({dashes + name}), HasSubstr("needs a value"));
        }
      }
    }
  }
}

TEST(OptionTable, HasEachNameOnceAndTellsWhatItDoes) {
  std::vector<std::string> names;
  for (const OptionSpec& option : OptionTable()) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    names.insert(names.end(), option.also.begin(), option.also.end());
    EXPECT_NE(std::string(option.help), "") << option.names[0];
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(OptionTable, HasEverySpellingOfIbmsDdlrun) {
  const std::vector<std::string> with_value = {"-m", "--m", "-mode", "--mode"};
  for (const std::string& spelling : with_value) {
    EXPECT_EQ(ParseOptions({spelling, "r"}).mode, "r") << spelling;
  }
  for (const std::string spelling : {"-ddlarg", "--ddlarg", "-ddloption", "--ddloption"}) {
    EXPECT_THAT(ParseOptions({spelling, "-dbg_level 1"}).ddl_options, ElementsAre("-dbg_level 1"));
  }
  for (const std::string spelling : {"-rf", "--rf", "-rankfile", "--rankfile"}) {
    EXPECT_EQ(ParseOptions({spelling, "f"}).rankfile, "f");
  }
  for (const std::string spelling : {"-H", "--H", "-host", "--host"}) {
    EXPECT_EQ(ParseOptions({spelling, "h1,h2"}).hosts, "h1,h2");
  }
  EXPECT_TRUE(ParseOptions({"-no_ddloptions"}).no_ddl_options);
  EXPECT_TRUE(ParseOptions({"--no-ddl-host-list"}).no_ddl_host_list);
  EXPECT_EQ(ParseOptions({"-hostfile", "f"}).hostfile, "f");
  EXPECT_EQ(ParseOptions({"-aisles", "2"}).aisles, 2);
  EXPECT_EQ(ParseOptions({"--racks", "4"}).racks, 4);
  EXPECT_EQ(ParseOptions({"--nodes", "18"}).nodes, 18);
  EXPECT_EQ(ParseOptions({"--accelerators", "4"}).accelerators, 4);
  EXPECT_EQ(ParseOptions({"--accelerators", "0"}).accelerators, 0);
  EXPECT_THAT(ParseOptions({"-mpiarg", "-x EGO_TOP"}).mpi_arguments, ElementsAre("-x EGO_TOP"));
  EXPECT_TRUE(ParseOptions({"--tcp"}).tcp);
  EXPECT_TRUE(ParseOptions({"-v"}).verbose);
}

TEST(Options, ProgramIsTheFirstArgumentThatIsNoOption) {
  const Options options = ParseOptions({"-n", "4", "python", "train.py", "--n", "8", "-v"});
  EXPECT_EQ(options.ranks, 4);
  EXPECT_FALSE(options.verbose);
  EXPECT_THAT(options.program, ElementsAre("python", "train.py", "--n", "8", "-v"));
}

TEST(Options, TwoDashesAloneEndTheOptions) {
  EXPECT_THAT(ParseOptions({"-v", "--", "-odd-name"}).program, ElementsAre("-odd-name"));
}

TEST(Options, RepeatsWhatMayBeRepeated) {
  EXPECT_THAT(ParseOptions({"-x", "A", "-x", "B=1=2", "-mpiarg", "a", "-mpiarg", "b"}).exports,
              ElementsAre("A", "B=1=2"));
}

TEST(Options, DryRunTakesAFormatAfterEqualsOnly) {
  EXPECT_EQ(ParseOptions({"--dry-run", "json"}).dry_run, DryRun::kText);
  EXPECT_TRUE(ParseOptions({"--advise"}).advise);
  EXPECT_FALSE(ParseOptions({"--advise", "1125"}).advised_speed);
  EXPECT_EQ(ParseOptions({"--advise=1125.5"}).advised_speed, 1125.5);
  EXPECT_EQ(MessageOf({"--advise=0"}),
            "option --advise: '0' is not the images/s of one GPU, a number above 0");
  EXPECT_EQ(ParseOptions({"--dry-run=json"}).dry_run, DryRun::kJson);
  EXPECT_EQ(MessageOf({"--dry-run=yaml"}), "option --dry-run: 'yaml' is not text or json");
}

TEST(Options, NamesTheNearestSpellingOfAnUnknownOption) {
  EXPECT_EQ(MessageOf({"--acelerators", "4"}),
            "unknown option --acelerators; did you mean --accelerators?");
  EXPECT_EQ(MessageOf({"-hostfil=x"}), "unknown option -hostfil; did you mean -hostfile?");
  EXPECT_EQ(MessageOf({"--timeout", "60"}),
            "unknown option --timeout; write: timeout -k 60 3600 ddlrun ...");
  EXPECT_EQ(MessageOf({"--log-level=debug"}),
            "unknown option --log-level; -v says more, in ddlrun.log all is said");
  EXPECT_EQ(MessageOf({"-n6"}), "unknown option -n6; write: -n 6");
  EXPECT_EQ(MessageOf({"-v6"}), "unknown option -v6; ddlrun --help lists all");  // a switch
  EXPECT_EQ(MessageOf({"-n6x"}), "unknown option -n6x; ddlrun --help lists all");
  EXPECT_EQ(MessageOf({"--zzzzzzzz"}), "unknown option --zzzzzzzz; ddlrun --help lists all");
}

TEST(Options, TakesTheNamesAndValuesOfOtherLaunchers) {
  const Options options = ParseOptions(
      {"--nproc_per_node=4", "--cpus-per-task=8", "--gpus-per-node", "2", "--ntasks=16",
       "--machinefile=h", "--distribution=block", "--mpi=pmi2", "--cpu-bind=none", "--label",
       "--hang_timeout=9", "--signal=B:USR2@90", "--wait=0", "./train"});
  EXPECT_EQ(options.ranks_per_node, 4);
  EXPECT_EQ(options.cpus_per_rank, 8);
  EXPECT_EQ(options.accelerators, 2);
  EXPECT_EQ(options.ranks, 16);
  EXPECT_EQ(options.hostfile, "h");
  EXPECT_EQ(options.rank_order, "node");
  EXPECT_EQ(options.pmi, "pmi2");
  EXPECT_EQ(options.bind, "none");
  EXPECT_EQ(options.tag_format, "[%r] ");
  EXPECT_EQ(options.hang_after, 9);
  EXPECT_EQ(options.stop_before, 90);
  EXPECT_TRUE(options.stop_by_usr2);
  EXPECT_EQ(options.end_limit, 0);
  EXPECT_FALSE(ParseOptions({"--nproc-per-node=gpu"}).ranks_per_node);
  EXPECT_EQ(MessageOf({"--signal=TERM@9"}),
            "option --signal: 'TERM@9' is not N, N:USR1, N:USR2 or USR1@N");
}

TEST(Options, ReadsListsOfRanks) {
  const std::pair<const char*, std::optional<int>> cases[] = {
      {"0", 0},     {"0,3-5", 5}, {"7,2-3", 7}, {"all", 0},    {"4-4", 4},     {"", {}},
      {"a", {}},    {"1,", {}},   {",1", {}},   {"2-1", {}},   {"-1", {}},     {"1-", {}},
      {"1--2", {}}, {"1 ,2", {}}, {"0x1", {}},  {"all,1", {}}, {"1000001", {}}};
  for (const auto& [list, largest] : cases) EXPECT_EQ(LargestRank(list), largest) << list;
  EXPECT_FALSE(LargestRank(std::string(1001, '1')));
}

TEST(Options, OfTheConsoleAreReadAndRejected) {
  const Options options =
      ParseOptions({"--tag-output=%t %r/%l@%h %%", "--show-ranks", "0,2", "--fold-output", "--wrap",
                    "0: nsys profile -o 'r %r'", "--wrap=all:numactl -l", "x"});
  EXPECT_EQ(options.tag_format, "%t %r/%l@%h %%");
  EXPECT_EQ(options.shown_ranks, "0,2");
  EXPECT_EQ(options.fold_output, "equal");
  ASSERT_EQ(options.wraps.size(), 2U);
  EXPECT_EQ(options.wraps[0].ranks, "0");
  EXPECT_THAT(options.wraps[0].words, ElementsAre("nsys", "profile", "-o", "r %r"));
  EXPECT_EQ(options.wraps[1].ranks, "all");
  EXPECT_THAT(options.wraps[1].words, ElementsAre("numactl", "-l"));
  EXPECT_EQ(ParseOptions({"--fold-output=numbers", "x"}).fold_output, "numbers");
  const std::pair<std::string, std::string> wrong[] = {
      {"--tag-output=%r %x", "'%x' is none of these"},
      {"--tag-output=%r %", "'%' is none of these"},
      {"--show-ranks=1-0", "is not a list of ranks, such as 0,3-5, or all"},
      {"--fold-output=lines", "is not equal or numbers"},
      {"--wrap=nice", "is not RANKS: COMMAND"},
      {"--wrap=0:", "is not RANKS: COMMAND"},
      {"--wrap=x: nice", "is not RANKS: COMMAND"},
      {"--wrap=0: " + std::string(4001, 'x'), "whose words have at most 4000 bytes"},
  };
  for (const auto& [option, message] : wrong) EXPECT_THAT(MessageOf({option}), HasSubstr(message));
}

TEST(Options, AnswersTheOptionsOfOtherLaunchersWithItsOwn) {
  const std::pair<const char*, const char*> cases[] = {
      {"--nnodes=2", "the nodes are those of the job (#SBATCH --nodes=2)"},
      {"-N2", "the nodes are those of the job (#SBATCH --nodes=2)"},
      {"--num_machines=2", "the nodes are those of the job"},
      {"--rdzv-backend=c10d", "leave it out: one ddlrun starts the ranks of all nodes"},
      {"--master_port=1", "leave it out: one ddlrun starts the ranks of all nodes"},
      {"-K", "the first rank that fails ends the job"},
      {"--module", "python3 -m MODULE"},
      {"--mixed_precision=bf16", "set this in the program"},
      {"--redirects=3", "--log-dir DIR"},
      {"-w", "-H n1,n2"},
      {"-f", "--hostfile FILE"},
      {"--gres=gpu:4", "#SBATCH --gpus-per-node=4"},
      {"-c4", "--cpus-per-rank N"},
      {"--partition=gpu", "#SBATCH"},
      {"--export=ALL", "-x VAR=value"},
      {"--wdir=/x", "cd DIR"},
      {"--map-by=node", "--rank-order and --ranks-per-node"},
      {"--allow-run-as-root", "leave it out: ddlrun gives it"},
      {"--mca", "--mpiarg \"--mca btl tcp,self\""},
      {"--report-bindings", "--dry-run"},
      {"--bootstrap=ssh", "HYDRA_BOOTSTRAP"},
      {"--overlap", "--srunarg --overlap"},
  };
  for (const auto& [option, answer] : cases) {
    EXPECT_THAT(MessageOf({option, "x"}), HasSubstr(answer)) << option;
  }
  EXPECT_THAT(MessageOf({"-m", "train.main"}), HasSubstr("ddlrun python3 -m train.main"));
}

TEST(Options, RejectsAWrongValueAndSaysWhatIsExpected) {
  EXPECT_EQ(MessageOf({"-n", "0"}), "option -n: '0' is not a whole number from 1 to 1000000");
  EXPECT_EQ(MessageOf({"-n", "4x"}), "option -n: '4x' is not a whole number from 1 to 1000000");
  EXPECT_EQ(MessageOf({"-np", "1000001"}),
            "option -np: '1000001' is not a whole number from 1 to 1000000");
  EXPECT_EQ(MessageOf({"--launcher=ssh"}),
            "option --launcher: 'ssh' is not auto or srun or mpirun or local or hydra");
  for (const std::string text : {"=b", "A B=c", "A\tB", " A=b", "A\n=b"}) {
    EXPECT_EQ(MessageOf({"-x", text}), "option -x: '" + text + "' is not VAR or VAR=value");
  }
  for (const std::string text : {"FOO.BAR", "BASH_FUNC_x%%=() { :; }", "1A=b", "foo-bar=1 2"}) {
    EXPECT_THAT(ParseOptions({"-x", text}).exports, ElementsAre(text));
  }
  EXPECT_EQ(MessageOf({"-tcp=1"}), "option -tcp takes no value");
  EXPECT_EQ(MessageOf({"--log-dir=~/logs", "true"}),
            "option --log-dir needs a path in which no ~ is left, not '~/logs': a shell replaces "
            "it at the beginning of a word alone: write $HOME/logs");
  EXPECT_EQ(
      MessageOf({"--log-dir", "logs\r", "true"}),
      "option --log-dir ends with a carriage return: the script has ends of lines of Windows: "
      "sed -i 's/\\r$//' SCRIPT");
  EXPECT_EQ(
      MessageOf({"\u2013n", "2", "true"}),
      "unknown option \u2013n; its dash is one of a text processor, which only looks like that "
      "of the keyboard: write - or --");
  EXPECT_EQ(MessageOf({"-m", "q"}), "option -m: 'q' is not p or b or n or r or m or c");
  EXPECT_EQ(MessageOf({"-H", ""}), "option -H: '' is not a value that is not empty");
}

TEST(HelpText, NamesEveryOptionAndFitsALine) {
  const std::string help = HelpText(OptionTable());
  for (const OptionSpec& option : OptionTable()) {
    for (const std::string& name : option.names) EXPECT_THAT(help, HasSubstr("-" + name));
  }
  std::size_t start = 0;
  while (start < help.size()) {
    const std::size_t end = help.find('\n', start);
    EXPECT_LE(end - start, 101U) << help.substr(start, end - start);
    start = end + 1;
  }
}

}  // namespace
}  // namespace launcher
