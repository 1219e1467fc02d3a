// SPDX-License-Identifier: Apache-2.0

#include <random>
#include <stdexcept>

#include "rankfile/cpu_list.h"
#include "rankfile/ddl.h"
#include "rankfile/host_name.h"
#include "rankfile/hostfile.h"
#include "rankfile/hostlist.h"
#include "rankfile/openmpi_rankfile.h"
#include "rankfile/placement.h"
#include "rankfile/scanner.h"
#include "tests/rankfile/readme_vectors.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace rankfile {
namespace {

TEST(CpuList, ParsesAndRejectsAsTheReadmeSays) {
  CheckReadmeVectors("cpu-list-parse", [](const std::string& text) {
    std::string numbers;
    for (const int cpu : ParseCpuList(text)) {
      if (!numbers.empty()) numbers += ' ';
      numbers += std::to_string(cpu);
    }
    return numbers;
  });
}

TEST(CpuList, FormatsAsTheReadmeSays) {
  CheckReadmeVectors("cpu-list-format", [](const std::string& text) {
    std::istringstream numbers(text);
    std::vector<int> cpus;
    for (int cpu = 0; numbers >> cpu;) cpus.push_back(cpu);
    return FormatCpuList(cpus);
  });
}

TEST(CpuList, TakesEveryCpuThereMayBe) {
  EXPECT_EQ(FormatCpuList(ParseCpuList("0-65535")), "0-65535");
}

TEST(DdlHostList, ReadsAndRejectsAsTheReadmeSays) {
  CheckReadmeVectors("ddl-host-list", [](const std::string& text) {
    return FormatDdlHostList(ParseDdlHostList(text));
  });
}

TEST(DdlHostList, NumbersAreGlobalRanks) {
  const Placement placement = ParseDdlHostList("g28n14:0,2;g28n15:1,3");
  ASSERT_EQ(placement.ranks.size(), 4u);
  EXPECT_EQ(placement.ranks[1].host, "g28n15");
  EXPECT_EQ(placement.ranks[2].host, "g28n14");
}

TEST(DdlHostList, DoesNotWriteABrokenPlacement) {
  EXPECT_THROW(FormatDdlHostList({{{.host = "a:b", .cores = {}}}}), std::invalid_argument);
}

TEST(DdlOptions, ReadsAndRejectsAsTheReadmeSays) {
  CheckReadmeVectors("ddl-options", [](const std::string& text) {
    return FormatDdlOptions(ParseDdlOptions(text));
  });
}

TEST(DdlOptions, CountsRanks) { EXPECT_EQ(ParseDdlOptions("-mode p:6x18x4x2").RankCount(), 864); }

TEST(DdlOptions, DoesNotWriteWhatWouldNotReadBack) {
  DdlOptions options{.mode = 'z'};
  EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument);
  options = DdlOptions();
  options.gpus_per_node = 0;
  EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument);
  options.gpus_per_node = kMaxRanks;
  EXPECT_NO_THROW(FormatDdlOptions(options));
  options.nodes_per_rack = 2;
  EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument);
  for (const char* word : {"", "a b", "a\nb", "-mode"}) {
    options = DdlOptions();
    options.extra = {word};
    EXPECT_THROW(FormatDdlOptions(options), std::invalid_argument) << word;
  }
}

TEST(Hostfile, ReadsAndRejectsAsTheReadmeSays) {
  CheckReadmeVectors("hostfile",
                     [](const std::string& text) { return FormatHostfile(ParseHostfile(text)); });
}

TEST(Hostfile, TellsAHostWithoutSlotsFromOneWithOne) {
  const std::vector<HostfileEntry> entries = ParseHostfile("a\nb slots=1\n");
  EXPECT_FALSE(entries[0].slots);
  EXPECT_EQ(entries[1].slots, 1);
}

TEST(Hostfile, FillsHostsInTurn) {
  const Placement placement = PlaceOnHosts(ParseHostfile("b slots=2\na\nc:2"));
  EXPECT_EQ(FormatDdlHostList(placement), "b:0,1;a:2;c:3,4");
  EXPECT_EQ(FormatHostfile(HostfileOf(placement)), "b slots=2\na slots=1\nc slots=2\n");
}

TEST(Hostfile, RejectsMoreRanksThanThereMayBe) {
  EXPECT_THROW(PlaceOnHosts(ParseHostfile("a slots=1048576\nb")), std::invalid_argument);
}

TEST(Hostfile, RejectsMoreHostsThanThereMayBe) {
  std::string text;
  for (int i = 0; i < 65536; ++i) text.append("n").append(std::to_string(i)).append("\n");
  EXPECT_EQ(ParseHostfile(text).size(), 65536u);
  EXPECT_THROW(ParseHostfile(text + "x\n"), ParseError);
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> Split(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> list;
  for (std::string word; words >> word;) list.push_back(word);
  return list;
}

TEST(Hostlist, ExpandsAndRejectsAsTheReadmeSays) {
  CheckReadmeVectors("hostlist-expand",
                     [](const std::string& text) { return Joined(ExpandHostlist(text)); });
}

TEST(Hostlist, CompressesAsTheReadmeSays) {
  CheckReadmeVectors("hostlist-compress",
                     [](const std::string& text) { return CompressHostlist(Split(text)); });
}

TEST(Hostlist, ExpandingWhatWasCompressedGivesTheSameList) {
  std::mt19937 random(29);
  const std::vector<std::string> prefixes = {"n", "gpu", "r1-", "a.b", ""};
  const std::vector<std::string> suffixes = {"", "", "", ".x.org", "-ib"};
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> hosts;
    const std::size_t count = random() % 30;
    unsigned number = random() % 120;
    while (hosts.size() < count) {
      const int width = static_cast<int>(random() % 4);
      std::string digits = std::to_string(number);
      while (static_cast<int>(digits.size()) < width) digits.insert(0, 1, '0');
      hosts.push_back(prefixes[random() % prefixes.size()] + digits +
                      suffixes[random() % suffixes.size()]);
      number = random() % 4 == 0 ? random() % 120 : number + 1;
    }
    const std::string text = CompressHostlist(hosts);
    EXPECT_EQ(ExpandHostlist(text), hosts) << text;
  }
}

TEST(Hostlist, HoldsAsManyHostsAsSlurmAndNoMore) {
  const std::vector<std::string> hosts = ExpandHostlist("n[0-65535]");
  ASSERT_EQ(hosts.size(), kMaxHosts);
  EXPECT_EQ(hosts.back(), "n65535");
  EXPECT_EQ(CompressHostlist(hosts), "n[0-65535]");

  std::vector<std::string> more = hosts;
  more.push_back("n65536");
  EXPECT_THROW(CompressHostlist(more), std::invalid_argument);
  EXPECT_THROW(ExpandHostlist("n[0-65536]"), ParseError);
}

TEST(Hostlist, CountsBeforeItAllocates) {
  // 10^18 hosts, and 10^30: the refusal must come at once.
  EXPECT_THROW(ExpandHostlist("n[0-999999999999999999]"), ParseError);
  EXPECT_THROW(ExpandHostlist("a[0-99999]b[0-99999]c[0-99999]d[0-99999]e[0-99999]f[0-99999]"),
               ParseError);
}

TEST(Hostlist, RejectsNamesThatAreTooLong) {
  const std::string longest(253, 'a');
  EXPECT_EQ(ExpandHostlist(longest).front(), longest);
  EXPECT_THROW(ExpandHostlist(longest + "a"), ParseError);
  EXPECT_THROW(ExpandHostlist(std::string(252, 'a') + "[8-10]"), ParseError);
}

TEST(Hostlist, NamesTheSourceInRefusals) {
  EXPECT_EQ(tests::Rejection<ParseError>([&] { ExpandHostlist("n[1-2", "SLURM_JOB_NODELIST"); }),
            "SLURM_JOB_NODELIST:1:6: expected ']', as in n[1-3,07],login1, "
            "not the end of the text");
}

TEST(Hostlist, RejectsToCompressWhatIsNotAHostName) {
  for (const char* name : {"", "a,b", "a b", "n[1]", "-a", "a\n"}) {
    EXPECT_THROW(CompressHostlist({name}), std::invalid_argument) << name;
  }
}

TEST(OmpiRankfile, ReadsAndRejectsAsTheReadmeSays) {
  CheckReadmeVectors("rankfile",
                     [](const std::string& text) { return FormatRankfile(ParseRankfile(text)); });
}

TEST(OmpiRankfile, ResolvesRelativeHostsAsTheReadmeSays) {
  CheckReadmeVectors("rankfile-on-n1-n2", [](const std::string& text) {
    return FormatRankfile(ParseRankfile(text, "rankfile", {"n1", "n2"}));
  });
}

TEST(OmpiRankfile, RejectsDuplicateRankWithFileAndLine) {
  EXPECT_EQ(tests::Rejection<ParseError>([&] {
              ParseRankfile("rank 0=a slot=0:0\n\nrank 0=a slot=0:1\n", "/tmp/RANKFILE");
            }),
            "/tmp/RANKFILE:3:1: rank 0 is already given at 1:1");
}

TEST(OmpiRankfile, KeepsEveryCoreOfASocketApartFromNumbers) {
  const Placement placement = ParseRankfile("rank 0=a slot=1:*");
  EXPECT_EQ(placement.ranks[0].cores,
            (std::vector<CoreRange>{{.socket = 1, .first = 0, .last = kEveryCore}}));
}

TEST(OmpiRankfile, DoesNotWriteWhatOpenMpiCannotRead) {
  Placement scattered{{{.host = "a", .cores = {}}}};
  EXPECT_THROW(FormatRankfile(scattered), std::invalid_argument);  // no cores
  for (int core = 0; core < 20; core += 2) {
    scattered.ranks[0].cores.push_back({.socket = 0, .first = core, .last = core});
  }
  EXPECT_EQ(FormatRankfile(scattered),
            "rank 0=a     slot=0:0;0:2;0:4;0:6;0:8;0:10;0:12;0:14;0:16;0:18\n");
  for (int core = 20; core < 40; core += 2) {
    scattered.ranks[0].cores.push_back({.socket = 0, .first = core, .last = core});
  }
  EXPECT_THROW(FormatRankfile(scattered), std::invalid_argument);  // 64 characters or more
}

TEST(OmpiRankfile, DoesNotWriteABrokenPlacement) {
  EXPECT_THROW(FormatRankfile({{{.host = "a b", .cores = {{.socket = 0}}}}}),
               std::invalid_argument);
}

// Two ranks on each of two hosts, with cores.
Placement ValidPlacement() {
  return {{{.host = "a", .cores = {{.socket = 0, .first = 0, .last = 3}}},
           {.host = "b", .cores = {{.socket = 0, .first = 0, .last = 3}}},
           {.host = "a", .cores = {{.socket = 1, .first = 0, .last = kEveryCore}}},
           {.host = "b", .cores = {{.socket = 0, .first = 0, .last = 3}, {.socket = 1}}}}};
}

// Expects a problem of `rank` that says `message`.
void ExpectProblem(const Placement& placement, int rank, const std::string& message) {
  const auto problem = FindProblem(placement);
  ASSERT_TRUE(problem) << message;
  EXPECT_EQ(problem->rank, rank);
  EXPECT_THAT(problem->message, HasSubstr(message));
  EXPECT_THROW(RequireValid(placement), std::invalid_argument);
}

TEST(Placement, TakesAnEmptyAndAValidOne) {
  EXPECT_FALSE(FindProblem({}));
  EXPECT_FALSE(FindProblem(ValidPlacement()));
  EXPECT_NO_THROW(RequireValid(ValidPlacement()));
}

TEST(Placement, FindsBadHostNames) {
  Placement placement = ValidPlacement();
  placement.ranks[2].host = "a;rm -rf";
  ExpectProblem(placement, 2, "is not a host name");
  placement.ranks[2].host = "a.x.org";
  ExpectProblem(placement, 2, "a.x.org and a are one host spelled in two ways");
}

TEST(Placement, FindsUnboundRanksAmongBoundOnes) {
  Placement placement = ValidPlacement();
  placement.ranks[1].cores.clear();
  ExpectProblem(placement, 1, "give them to all or to none");
}

TEST(Placement, FindsCoresThatAreNotInNormalForm) {
  Placement placement = ValidPlacement();
  std::vector<CoreRange>& cores = placement.ranks[3].cores;
  cores = {{.socket = 1}, {.socket = 0}};
  ExpectProblem(placement, 3, "not ascending and apart");
  cores = {{.socket = 0, .first = 0, .last = 1}, {.socket = 0, .first = 2, .last = 3}};
  ExpectProblem(placement, 3, "not ascending and apart");
  cores = {{.socket = 0, .first = 3, .last = 1}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = -2}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = 0, .first = 0, .last = kMaxCore + 1}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = kWholeNode, .first = 0, .last = kEveryCore}};
  ExpectProblem(placement, 3, "backwards or out of limits");
  cores = {{.socket = kWholeNode, .first = 0, .last = 1}};
  ExpectProblem(placement, 3, "use one form");
}

TEST(Placement, MakesOneRangeOfThoseThatTouch) {
  EXPECT_THAT(NormalCores({{1, 4, 5}, {0, 2, 3}, {0, 0, 1}, {0, 1, 1}, {0, 5, 5}}),
              ElementsAre(CoreRange{0, 0, 3}, CoreRange{0, 5, 5}, CoreRange{1, 4, 5}));
  EXPECT_THAT(NormalCores({{0, 7, 9}, {0, 0, kEveryCore}}),
              ElementsAre(CoreRange{0, 0, kEveryCore}));
}

TEST(Placement, ListsRanksByHostInTheOrderOfTheLowestRank) {
  const std::vector<HostRanks> hosts = RanksByHost(ValidPlacement());
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].host, "a");
  EXPECT_THAT(hosts[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(hosts[1].ranks, ElementsAre(1, 3));
}

TEST(HostName, ComparesAsTheReadmeSays) {
  CheckReadmeVectors("same-host", [](const std::string& text) {
    const std::size_t blank = text.find(' ');
    const std::string left = text.substr(0, blank);
    const std::string right = text.substr(blank + 1);
    EXPECT_EQ(SameHost(left, right), SameHost(right, left));
    return SameHost(left, right) ? "same" : "different";
  });
}

TEST(HostName, FindsASecondSpellingInEitherOrder) {
  HostSpellings qualified_first;
  EXPECT_EQ(qualified_first.Add("a.x.org"), nullptr);
  EXPECT_EQ(qualified_first.Add("a.x.org"), nullptr);
  EXPECT_EQ(qualified_first.Add("a.y.org"), nullptr);
  EXPECT_EQ(qualified_first.Add("b"), nullptr);
  const std::string* other = qualified_first.Add("a");
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(*other, "a.x.org");
  EXPECT_NE(qualified_first.Add("B.x.org"), nullptr);
}

TEST(Scanner, RejectsTextThatIsTooLong) {
  const std::string longest(kMaxTextBytes, ' ');
  EXPECT_NO_THROW(Scanner(longest, "text"));
  EXPECT_THROW(Scanner(longest + ' ', "text"), ParseError);
}

TEST(Scanner, CountsLinesAndColumns) {
  Scanner scanner("a\nbc", "text");
  EXPECT_EQ(scanner.Here(), (Position{.line = 1, .column = 1}));
  scanner.Next();
  EXPECT_EQ(scanner.Here(), (Position{.line = 1, .column = 2}));
  EXPECT_TRUE(scanner.Eat("\nb"));
  EXPECT_EQ(scanner.Here(), (Position{.line = 2, .column = 2}));
}

TEST(Scanner, TakesAZeroByteForACharacterAndNotForTheEnd) {
  Scanner scanner(std::string_view("\0", 1), "text");
  EXPECT_FALSE(scanner.AtEnd());
  EXPECT_THROW(scanner.ExpectEnd("nothing"), ParseError);
}

}  // namespace
}  // namespace rankfile
