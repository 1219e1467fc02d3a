// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/features/features.h"
#include "launcher/tune/measurements.h"
#include "launcher/tune/trials.h"
#include "launcher/tune/tuned_site.h"
#include "tests/launcher/health/fake_node_info.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

constexpr char kCopies[] =
    "# ddlbench copies: 67108864 bytes of the host's memory, the median of 5 copies, ...\n"
    "#  rank  host              device        bridge    from  to device    to host\n"
    "     0  n1                0004:04:00.0  0004:00    all       9.00       9.00\n"
    "     1  n1                0035:03:00.0  0035:00    all      30.00      15.00\n"
    "     0  n1                0004:04:00.0  0004:00  bound      10.00      10.00\n"
    "     1  n1                0035:03:00.0  0035:00  bound      30.00      15.00\n"
    "srun: a word of something else\n"
    "     0  n1                0004:04:00.0  0004:00      0      10.00      10.00\n"
    "     0  n1                0004:04:00.0  0004:00      8      40.00      40.00\n"
    "     1  n1                0035:03:00.0  0035:00      8       0.00      40.00\n";

TEST(ParseCopies, TakesTheRowsAlone) {
  const std::vector<CopyRow> rows = ParseCopies(kCopies);
  ASSERT_THAT(rows, SizeIs(6));
  EXPECT_EQ(rows[0].from, kAll);
  EXPECT_EQ(rows[1].rank, 1);
  EXPECT_EQ(rows[1].host, "n1");
  EXPECT_EQ(rows[1].device, "0035:03:00.0");
  EXPECT_EQ(rows[1].bridge, "0035:00");
  EXPECT_DOUBLE_EQ(rows[1].rate, 20);  // 2 / (1/30 + 1/15)
  EXPECT_EQ(rows[2].from, kBound);
  EXPECT_EQ(rows[5].from, 8);
  EXPECT_THAT(ParseCopies(""), IsEmpty());
}

TEST(CopyRemarks, NameARankThatIsBoundFarFromItsDevice) {
  const std::vector<CopyRow> run = ParseCopies(kCopies);
  EXPECT_THAT(
      CopyRemarks({run, run, run}),
      ElementsAre(
          "copies to devices and back, all ranks at once: 14.5 GB/s in the median, 9.00 GB/s "
          "of rank 0 on n1 (0004:04:00.0)",
          "rank 0 on n1 (0004:04:00.0) is bound far from its device: 10.0 GB/s, from NUMA "
          "node 8 40.0 GB/s",
          "if hwloc does not know better, tell it: export "
          "HWLOC_PCI_LOCALITY=\"0004:00 $(hwloc-calc -p numa:8)\""));
}

// Rank r on n<r / 2>, with a rate where it is bound and one on node 0.
std::vector<CopyRow> Rows(const std::vector<double>& bound, double on_node_0,
                          const std::string& device = "0000:3b:00.0") {
  std::vector<CopyRow> rows;
  for (int rank = 0; rank < static_cast<int>(bound.size()); ++rank) {
    const std::string host = "n" + std::to_string(rank / 2);
    for (const int from : {kAll, kBound}) {
      rows.push_back({rank, host, device, "0000:3a", from, bound[static_cast<std::size_t>(rank)]});
    }
    rows.push_back({rank, host, device, "0000:3a", 0, on_node_0});
  }
  return rows;
}

TEST(CopyRemarks, AreOfNoRankWithinTheScatterOrALittleFaster) {
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 11.9), Rows({10, 10}, 11.9)}), SizeIs(1));
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 12.1), Rows({10, 10}, 12.1)}), SizeIs(4));
  // From 5 to 40 GB/s from one run to the next.
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 5), Rows({10, 10}, 14), Rows({10, 10}, 40)}), SizeIs(1));
}

TEST(CopyRemarks, NameARankWhoseCopiesAreSlow) {
  EXPECT_THAT(
      CopyRemarks({Rows({10, 10, 6.9, 10}, 6)}),
      ElementsAre(HasSubstr("6.90 GB/s of rank 2 on n1 (0000:3b:00.0)"),
                  "rank 2 on n1 (0000:3b:00.0) copies at 6.90 GB/s, the median has 10.0 GB/s: "
                  "is its link narrower, or its memory slower?"));
  EXPECT_THAT(CopyRemarks({Rows({10, 10, 7.1, 10}, 6)}), SizeIs(1));
}

TEST(CopyRemarks, OfMemoryOfTheHostKnowNoNearerNode) {
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 40, "-")}),
              ElementsAre("copies in the memory of the hosts, all ranks at once: 10.0 GB/s in the "
                          "median, 10.0 GB/s of rank 0 on n0"));
  EXPECT_THAT(CopyRemarks({Rows({10, 1, 10}, 10, "-")}), SizeIs(2));
}

TEST(CopyRemarks, CountWhomTheyDoNotName) {
  const std::vector<std::string> lines = CopyRemarks({Rows(std::vector<double>(10, 10), 40)});
  ASSERT_THAT(lines, SizeIs(1 + kNamedRanks + 1 + 1));
  EXPECT_THAT(lines[kNamedRanks], StartsWith("rank 7 on n3"));
  EXPECT_EQ(lines[kNamedRanks + 1], "so are 2 more ranks: bound far from their devices");
  EXPECT_EQ(CopyRemarks({Rows(std::vector<double>(9, 10), 40)})[kNamedRanks + 1],
            "so is 1 more rank: bound far from their devices");
}

// One variable has all of them, and it is the same on all hosts.
TEST(CopyRemarks, TellHwlocOfEachBridgeOnce) {
  std::vector<CopyRow> run;
  const auto add = [&run](int rank, const std::string& host, const std::string& bridge, int near) {
    for (const int from : {kAll, kBound}) run.push_back({rank, host, "d", bridge, from, 10});
    run.push_back({rank, host, "d", bridge, near, 40});
  };
  add(0, "n1", "0000:3a", 1);
  add(1, "n1", "0000:3a", 1);
  add(2, "n1", "0000:80", 0);
  add(3, "n1", "-", 0);
  EXPECT_THAT(CopyRemarks({run}).back(),
              HasSubstr("HWLOC_PCI_LOCALITY=\"0000:3a $(hwloc-calc -p numa:1);0000:80 "
                        "$(hwloc-calc -p numa:0)\""));
  run.clear();
  add(0, "n1", "0000:3a", 1);
  add(1, "n2", "0000:3a", 0);
  EXPECT_EQ(
      CopyRemarks({run}).back(),
      "if hwloc does not know better, HWLOC_PCI_LOCALITY tells it, on each host (its manual)");
}

TEST(CopyRemarks, AreNoneWithoutFigures) {
  EXPECT_THAT(CopyRemarks({}), IsEmpty());
  EXPECT_THAT(CopyRemarks({{}}), IsEmpty());
  EXPECT_THAT(CopyRemarks({{{0, "n1", "-", "-", 0, 10}}}), IsEmpty());
}

// As ddlbench prints it, behind lines of ddlrun.
constexpr char kTable[] =
    "ddlrun: starting 2 ranks with the srun launcher\n"
    "# ddlbench allreduce: MPI (Open MPI v4.1.4), 2 ranks\n"
    "#       (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
    "       65536         16384     float     sum      -1      N/A     N/A     N/A    N/A    40.00 "
    "   "
    "1.59    1.59      0\n"
    "     1048576        262144     float     sum      -1      N/A     N/A     N/A    N/A    "
    "1000.0    "
    "4.06    4.06      0\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 3.7916 \n";

TEST(Figures, AreReadFromTheTable) {
  const std::vector<SizeTime> times = ParseAllReduce(kTable);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].bytes, 65536);
  EXPECT_DOUBLE_EQ(times[0].microseconds, 40);
  EXPECT_DOUBLE_EQ(times[1].microseconds, 1000);
  EXPECT_NEAR(ScoreOf(times), 200, 1e-9);
  EXPECT_FALSE(IsOfNccl(kTable));
  EXPECT_TRUE(IsOfNccl("# ddlbench allreduce: NCCL 2.18.5, 8 ranks\n"));
}

TEST(Figures, OfATableThatIsNotWholeOrWrongAreNone) {
  const std::string table = kTable;
  EXPECT_TRUE(ParseAllReduce("").empty());
  EXPECT_TRUE(ParseAllReduce(table.substr(0, table.find("# Avg"))).empty());
  std::string wrong = table;
  wrong.replace(wrong.find("      0\n"), 8, "      1\n");
  EXPECT_TRUE(ParseAllReduce(wrong).empty());
}

TEST(Summary, OfFiveLeavesTheOddOnesOutOfTheScatter) {
  const Summary summary = Summarize({100, 10, 12, 11, 1});
  EXPECT_DOUBLE_EQ(summary.median, 11);
  EXPECT_DOUBLE_EQ(summary.spread, 2);
  EXPECT_DOUBLE_EQ(Summarize({3, 1}).median, 2);
  EXPECT_DOUBLE_EQ(Summarize({3, 1}).spread, 2);
  EXPECT_DOUBLE_EQ(Summarize({7}).median, 7);
  EXPECT_DOUBLE_EQ(Summarize({7}).spread, 0);
}

TEST(IsBetter, NeedsMoreThanTheScatterOfEither) {
  EXPECT_TRUE(IsBetter({80, 10}, {100, 10}));
  EXPECT_FALSE(IsBetter({80, 20}, {100, 1}));
  EXPECT_FALSE(IsBetter({80, 1}, {100, 20}));
  EXPECT_FALSE(IsBetter({100, 0}, {80, 0}));
  EXPECT_FALSE(IsBetter({98, 0}, {100, 0}));
  EXPECT_TRUE(IsBetter({96, 0}, {100, 0}));
}

TEST(Texts, HaveUnits) {
  EXPECT_EQ(MicrosecondsText(9.5), "9.50 us");
  EXPECT_EQ(MicrosecondsText(450), "450 us");
  EXPECT_EQ(MicrosecondsText(12345), "12.3 ms");
  EXPECT_EQ(MicrosecondsText(2.5e6), "2.50 s");
  EXPECT_EQ(SummaryText({1200, 30}), "1.20 ms (scatter 30.0 us)");
}

std::vector<std::string> LabelsOf(const std::vector<Knob>& knobs, const std::string& title) {
  std::vector<std::string> labels;
  for (const Knob& knob : knobs) {
    if (knob.title != title) continue;
    for (const Choice& choice : knob.choices) labels.push_back(choice.label);
  }
  return labels;
}

std::vector<std::string> TitlesOf(const std::vector<Knob>& knobs) {
  std::vector<std::string> titles;
  for (const Knob& knob : knobs) titles.push_back(knob.title);
  return titles;
}

Settings SettingsOf(const std::string& site) {
  return MergeSettings(ParseOptions({}), ParseSiteConfig(site, "site.yaml"), {});
}

std::vector<NodeInfo> WithNetworks() {
  FakeJob job(2);
  for (NodeInfo& info : job.info) {
    info.ports.clear();
    info.details = {{"network eth0", "up, 1000 Mbit/s"},
                    {"network docker0", "up, virtual"},
                    {"network ib0", "up, 100000 Mbit/s"}};
  }
  job.info[0].details.push_back({"network eth7", "up, virtual"});
  job.info[1].details.push_back({"network eth8", "down, virtual"});
  return job.info;
}

TEST(Rails, AreThoseOfAllNodes) {
  const Rails networks = RailsOf(WithNetworks());
  EXPECT_THAT(networks.networks, ElementsAre("eth0", "ib0"));
  EXPECT_THAT(networks.ports, IsEmpty());
  FakeJob job(3);
  EXPECT_THAT(RailsOf(job.info).ports, ElementsAre("mlx5_0:1", "mlx5_3:1"));
  job.info[1].ports[0].state = "DOWN";
  EXPECT_THAT(RailsOf(job.info).ports, ElementsAre("mlx5_3:1"));
}

TEST(Rails, OfInfinibandGoBeforeNetworks) {
  const std::vector<Choice> choices = RailChoices({{"mlx5_0:1", "mlx5_3:1"}, {"eth0"}}, true);
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices[2].label, "mlx5_0:1,mlx5_3:1");
  EXPECT_EQ(choices[2].change.variables.at("NCCL_IB_HCA"), "=mlx5_0:1,mlx5_3:1");
  EXPECT_EQ(RailChoices({{"mlx5_0:1"}, {}}, false)[0].change.variables.at("UCX_NET_DEVICES"),
            "mlx5_0:1");
}

TEST(Knobs, OfMpiOverTcp) {
  const std::vector<Knob> knobs =
      MakeKnobs({{}, {"eth0", "ib0"}}, {false, true, 2}, SettingsOf("bind: auto"));
  EXPECT_THAT(TitlesOf(knobs), ElementsAre("network", "MPI's way", "cores", "order of ranks"));
  EXPECT_THAT(LabelsOf(knobs, "network"), ElementsAre("eth0", "ib0"));
  EXPECT_THAT(LabelsOf(knobs, "MPI's way"), ElementsAre("OMPI_MCA_pml=ucx", "OMPI_MCA_pml=ob1"));
  EXPECT_EQ(knobs[1].choices[0].change.variables.at("OMPI_MCA_pml_ucx_tls"), "any");
  EXPECT_EQ(knobs[1].choices[1].change.variables.size(), 1U);
  const std::vector<Knob> by_ports =
      MakeKnobs({{"mlx5_0:1"}, {}}, {false, true, 2}, SettingsOf(""));
  EXPECT_EQ(by_ports[0].choices[0].change.variables.size(), 1U);
  // What the job has now is no choice.
  EXPECT_THAT(LabelsOf(knobs, "cores"), ElementsAre("bind: none"));
  EXPECT_THAT(LabelsOf(knobs, "order of ranks"), ElementsAre("rank_order: cyclic"));
}

TEST(Knobs, OfNcclAreItsOwn) {
  const std::vector<Knob> knobs =
      MakeKnobs({{"mlx5_0:1"}, {"eth0"}}, {true, true, 1}, SettingsOf("bind: none"));
  EXPECT_THAT(TitlesOf(knobs), ElementsAre("GPUDirect", "SHARP", "algorithm", "channels", "cores"));
  EXPECT_THAT(LabelsOf(knobs, "cores"), ElementsAre("bind: auto"));
  EXPECT_THAT(TitlesOf(MakeKnobs({{}, {"eth0"}}, {true, true, 1}, SettingsOf(""))),
              ElementsAre("algorithm", "channels", "cores"));
}

TEST(Knobs, LeaveOutWhatTheSiteHas) {
  const Settings settings = SettingsOf(
      "environment: {UCX_NET_DEVICES: eth0, OMPI_MCA_btl_tcp_if_include: eth0, OMPI_MCA_pml: ob1}");
  const std::vector<Knob> knobs = MakeKnobs({{}, {"eth0", "ib0"}}, {false, true, 1}, settings);
  EXPECT_THAT(LabelsOf(knobs, "network"), ElementsAre("ib0"));
  EXPECT_THAT(LabelsOf(knobs, "MPI's way"), ElementsAre("OMPI_MCA_pml=ucx"));
}

TEST(Change, GoesToDdlrunAsOptions) {
  const Change change =
      Together({{{"bind", "none"}}, {{"A", "1"}}}, {{{"rank_order", "cyclic"}}, {{"A", "2"}}});
  EXPECT_THAT(OptionsFor(change), ElementsAre("--bind=none", "--rank-order=cyclic", "-x", "A=2"));
}

const std::vector<std::string> kHosts = {"n1", "n2", "n3", "n4"};

std::vector<PairTime> Pairs(double of_others) {
  std::vector<PairTime> pairs;
  for (const auto& [one, other] : PairsToMeasure(4)) {
    pairs.push_back({one, other, {of_others, of_others + 1, of_others - 1}});
  }
  return pairs;
}

TEST(Pairs, AreAllOfFewNodesAndARingOfMany) {
  EXPECT_THAT(PairsToMeasure(1), IsEmpty());
  EXPECT_EQ(PairsToMeasure(2).size(), 1U);
  EXPECT_EQ(PairsToMeasure(5).size(), 10U);
  const auto ring = PairsToMeasure(6);
  ASSERT_EQ(ring.size(), 6U);
  EXPECT_EQ(ring[5], std::pair(5, 0));
}

TEST(SlowLinkReporter, AreNoneWhereAllPairsAreAlike) {
  EXPECT_THAT(SlowLinkReporter("eth0", kHosts, Pairs(100)), IsEmpty());
  EXPECT_THAT(SlowLinkReporter("eth0", kHosts, {}), IsEmpty());
}

TEST(SlowLinkReporter, OfOneNodeNameTheNode) {
  std::vector<PairTime> pairs = Pairs(100);
  for (PairTime& pair : pairs) {
    if (pair.one == 2 || pair.other == 2) pair.microseconds = {900, 910, 905};
  }
  EXPECT_THAT(SlowLinkReporter("eth1", kHosts, pairs),
              ElementsAre("n3 is slow on eth1: with n1 905 us (scatter 10.0 us), with n2 905 us "
                          "(scatter 10.0 us), with n4 905 us (scatter 10.0 us), the fastest pair "
                          "100 us (scatter 2.00 us)"));
}

TEST(SlowLinkReporter, OfOnePairNameThePair) {
  std::vector<PairTime> pairs = Pairs(100);
  pairs[0].microseconds = {};
  pairs[5].microseconds = {300, 300, 300};
  EXPECT_THAT(SlowLinkReporter("eth1", kHosts, pairs),
              ElementsAre(StartsWith("n1 and n2 are slow on eth1: failed"),
                          StartsWith("n3 and n4 are slow on eth1: 300 us")));
}

TEST(SlowLinkReporter, WithinTheScatterAreNone) {
  std::vector<PairTime> pairs = Pairs(100);
  pairs[0].microseconds = {90, 200, 400};
  EXPECT_THAT(SlowLinkReporter("eth1", kHosts, pairs), IsEmpty());
  pairs[0].microseconds = {149, 150, 148};
  EXPECT_THAT(SlowLinkReporter("eth1", kHosts, pairs), IsEmpty());
}

Knob Networks() {
  return {"network", {{"eth0", {{}, {{"NET", "eth0"}}}}, {"eth1", {{}, {{"NET", "eth1"}}}}}};
}

// Plants figures: of each network the times of its runs, one after the other.
class Planted {
 public:
  explicit Planted(std::map<std::string, std::vector<double>> times) : times_(std::move(times)) {}

  std::optional<double> operator()(const Change& change) {
    const auto found = change.variables.find("NET");
    const std::string name = found == change.variables.end() ? "" : found->second;
    order_ += name.empty() ? "-" : name.substr(3);
    const std::vector<double>& times = times_[name];
    const std::size_t run = runs_[name]++;
    if (run >= times.size()) return std::nullopt;
    return times[run];
  }

  const std::string& order() const { return order_; }

 private:
  std::map<std::string, std::vector<double>> times_;
  std::map<std::string, std::size_t> runs_;
  std::string order_;
};

KnobResult Try(Planted& planted) {
  return TryKnob(Networks(), {}, [&planted](const Change& change) { return planted(change); });
}

TEST(TryKnob, TakesTheBestOfThoseThatAreBetter) {
  Planted planted({{"", {100, 101, 99, 100, 100}},
                   {"eth0", {80, 81, 79, 80, 80}},
                   {"eth1", {70, 71, 69, 70, 70}}});
  const KnobResult result = Try(planted);
  EXPECT_EQ(result.tried[result.best].label, "eth1");
  EXPECT_EQ(result.tried[result.best].change.variables.at("NET"), "eth1");
  EXPECT_EQ(ResultLines(result)[0], "network: eth1 is better");
  EXPECT_THAT(ResultLines(result)[3], HasSubstr("eth1: 70.0 us (scatter 0.00 us)"));
}

TEST(TryKnob, KeepsWhatIsThereWithinTheScatter) {
  Planted planted({{"", {100, 90, 110, 105, 95}},
                   {"eth0", {95, 85, 105, 100, 90}},
                   {"eth1", {98, 99, 98, 99, 98}}});
  const KnobResult result = Try(planted);
  EXPECT_EQ(result.best, 0U);
  EXPECT_THAT(ResultLines(result)[0], HasSubstr("kept as it is"));
}

TEST(TryKnob, MeasuresInTurnsThatBeginElsewhere) {
  const std::vector<double> same(5, 10);
  Planted planted({{"", same}, {"eth0", same}, {"eth1", same}});
  Try(planted);
  EXPECT_EQ(planted.order(), "-0101-1-0-0101-");
}

TEST(TryKnob, GivesUpWhatIsHopelessAfterOneRound) {
  const std::vector<double> same(5, 10);
  Planted planted({{"", same}, {"eth0", {31}}, {"eth1", same}});
  const KnobResult result = Try(planted);
  EXPECT_TRUE(result.tried[1].hopeless);
  EXPECT_EQ(result.tried[1].microseconds.size(), 1U);
  EXPECT_FALSE(result.tried[1].failed);
  EXPECT_EQ(result.best, 0U);
  EXPECT_THAT(ResultLines(result)[2], HasSubstr("not tried again"));
}

TEST(TryKnob, TakesWhatRunsWhereWhatIsThereDoesNot) {
  Planted planted({{"eth0", {12, 12, 12, 12, 12}}, {"eth1", {11, 11, 11, 11, 11}}});
  const KnobResult result = Try(planted);
  EXPECT_TRUE(result.tried[0].failed);
  EXPECT_EQ(result.tried[result.best].label, "eth1");
  EXPECT_EQ(ResultLines(result)[1], "  as it is: failed");
}

TEST(TryKnob, DoesNotTakeWhatFailsInALaterRound) {
  Planted planted({{"", {100, 100, 100, 100, 100}}, {"eth0", {10, 10}}, {"eth1", {}}});
  const KnobResult result = Try(planted);
  EXPECT_EQ(result.best, 0U);
  EXPECT_TRUE(result.tried[1].failed);
}

TEST(TryKnob, TriesOnTopOfWhatWasChosenBefore) {
  const Change base = {{{"bind", "none"}}, {}};
  bool is_on_top = true;
  const KnobResult result = TryKnob(Networks(), base, [&is_on_top](const Change& change) {
    is_on_top = is_on_top && change.keys.at("bind") == "none";
    return 1.0;
  });
  EXPECT_TRUE(is_on_top);
}

KnobResult Result(const std::string& title, const Change& before, const Change& change,
                  bool chosen) {
  KnobResult result;
  result.title = title;
  result.tried = {{"as it is", before, {200, 200, 200}},
                  {"another", Together(before, change), {100, 101, 99}}};
  result.best = chosen ? 1 : 0;
  return result;
}

TunedSite Example() {
  const Change network = {{},
                          {{"OMPI_MCA_btl_tcp_if_include", "eth0"}, {"UCX_NET_DEVICES", "eth0"}}};
  const Change order = {{{"rank_order", "node"}}, {}};
  return {{"Made by a test."},
          {Result("network", {}, network, true), Result("order", network, order, true),
           Result("cores", Together(network, order), {{{"bind", "none"}}, {}}, false)},
          {"n3 is slow"}};
}

std::string Written(const std::string& old_text) {
  return TunedSiteText(Example(), ParseSiteConfig(old_text, "old.yaml"), old_text);
}

TEST(TunedSite, KeepsTheOldFileAndReplacesWhatIsBetter) {
  const std::string old_text =
      "# Ours.\n"
      "launcher: srun   # always\n"
      "mpi_arguments:\n"
      "  - --mca\n"
      "# Wrong since 2020.\n"
      "rank_order: cyclic\n"
      "machine:\n"
      "  gpu: V100\n"
      "\n"
      "environment:\n"
      "  # told by a vendor\n"
      "  UCX_NET_DEVICES: eth1\n"
      "  OWN: 'a \"b\" \\c'\n";
  const std::string text = Written(old_text);
  const SiteConfig site = ParseSiteConfig(text, "new.yaml");
  EXPECT_EQ(site.rank_order->value, "node");
  EXPECT_EQ(site.launcher->value, "srun");
  EXPECT_EQ(site.mpi_arguments->value.size(), 1U);
  EXPECT_EQ(site.machine.gpu, "V100");
  EXPECT_EQ(site.environment.at("UCX_NET_DEVICES").value, "eth0");
  EXPECT_EQ(site.environment.at("OMPI_MCA_btl_tcp_if_include").value, "eth0");
  EXPECT_EQ(site.environment.at("OWN").value, "a \"b\" \\c");
  EXPECT_FALSE(site.bind);
  EXPECT_THAT(text, HasSubstr("# Ours.\nlauncher: srun   # always\n"));
  EXPECT_THAT(text, Not(HasSubstr("Wrong since")));
  EXPECT_THAT(text, Not(HasSubstr("cyclic")));
}

TEST(TunedSite, HasTheFiguresOfEveryValue) {
  const std::string text = Written("");
  EXPECT_THAT(text, HasSubstr("# Made by a test.\n"));
  EXPECT_THAT(text, HasSubstr("# order: another is better\n"
                              "#   as it is: 200 us (scatter 0.00 us)\n"
                              "#   another: 100 us (scatter 2.00 us)\n"
                              "rank_order: node\n"));
  // Both variables of one choice have the same figures, once.
  EXPECT_THAT(text, HasSubstr("environment:\n"
                              "  # network: another is better\n"
                              "  #   as it is: 200 us (scatter 0.00 us)\n"
                              "  #   another: 100 us (scatter 2.00 us)\n"
                              "  OMPI_MCA_btl_tcp_if_include: \"eth0\"\n"
                              "  UCX_NET_DEVICES: \"eth0\"\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("# cores: kept as it is"), HasSubstr("# n3 is slow\n")));
}

TEST(TunedSite, WithNothingBetterIsTheOldFile) {
  TunedSite tuned = Example();
  for (KnobResult& result : tuned.results) {
    result.best = 0;
    result.tried[0].change = {};  // nothing was chosen before it
  }
  const std::string old_text = "environment: {A: b}\nbind: none\n";
  const std::string text = TunedSiteText(tuned, ParseSiteConfig(old_text, "old.yaml"), old_text);
  EXPECT_THAT(text, HasSubstr(old_text));
  EXPECT_EQ(ParseSiteConfig(text, "new.yaml").environment.at("A").value, "b");
}

TEST(TunedSite, IsKnownToBePossibleBefore) {
  for (const char* old_text : {"", "launcher: srun\n", "environment: {A: b}\nbind: auto\n"}) {
    EXPECT_NO_THROW(CheckCanBeTuned(ParseSiteConfig(old_text, "old.yaml"), old_text)) << old_text;
  }
  const char* braces = "{launcher: srun}\n";
  EXPECT_THROW(CheckCanBeTuned(ParseSiteConfig(braces, "old.yaml"), braces), LaunchError);
}

TEST(TunedSite, OfAFileInBracesIsRejected) {
  EXPECT_THAT(tests::Rejection<LaunchError>(
                  EX_CONFIG, [&] { Written("{launcher: srun, rank_order: cyclic}\n"); }),
              HasSubstr("old.yaml: write each of its keys at the beginning"));
}

}  // namespace
}  // namespace launcher
