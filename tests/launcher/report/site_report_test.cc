// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/site_report.h"

#include <nlohmann/json.hpp>

#include "launcher/cli/site_config.h"
#include "launcher/features/features.h"
#include "launcher/report/report_lines.h"
#include "launcher/report/site_report.h"
#include "tests/launcher/health/fake_node_info.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

// "name: text (hosts)" of each line of this name.
std::vector<std::string> Of(const std::string& name, const std::vector<SiteReportField>& lines) {
  std::vector<std::string> texts;
  for (const SiteReportField& line : lines) {
    if (line.name != name) continue;
    texts.push_back(line.text + (line.hosts.empty() ? "" : " (" + HostsText(line.hosts) + ")"));
  }
  return texts;
}

TEST(NodeLines, OfNodesThatAgreeAreToldOnce) {
  FakeJob job(4);
  for (NodeInfo& info : job.info) info.details = {{"SMT", "on"}};
  const std::vector<SiteReportField> lines = NodeLines(job.info);
  EXPECT_THAT(Of("kernel", lines), ElementsAre("4.18.0"));
  EXPECT_THAT(Of("SMT", lines), ElementsAre("on"));
  EXPECT_THAT(Of("memory", lines), ElementsAre("512 GiB"));
  EXPECT_THAT(Of("GPUs", lines),
              ElementsAre("4 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes, by NVML"));
  EXPECT_THAT(Of("InfiniBand", lines),
              ElementsAre("mlx5_0:1 ACTIVE, 100 Gbit/s, InfiniBand; mlx5_3:1 ACTIVE, 100 Gbit/s, "
                          "InfiniBand"));
  EXPECT_TRUE(Differences(lines).empty());
}

TEST(NodeLines, OfNodesThatDifferNameTheNodes) {
  FakeJob job(4);
  job.info[0].kernel = "4.18.1";
  job.info[1].gpus[2].nvlinks = 5;
  job.info[3].details = {{"network ib1", "up"}};
  const std::vector<SiteReportField> lines = NodeLines(job.info);
  EXPECT_THAT(Of("kernel", lines), ElementsAre("4.18.0 (n[2-4])", "4.18.1 (n1)"));
  EXPECT_THAT(
      Of("GPUs", lines),
      ElementsAre("4 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes, by NVML "
                  "(n[1,3-4])",
                  "2 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes; "
                  "1 x Tesla V100-SXM2-16GB, 5 NVLinks, 16 of 16 PCIe lanes; "
                  "1 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes, by NVML (n2)"));
  EXPECT_THAT(Of("network ib1", lines), ElementsAre("not there (n[1-3])", "up (n4)"));
  EXPECT_THAT(Of("kernel", Differences(lines)),
              ElementsAre("differs between nodes: 4.18.0 (n[2-4]), 4.18.1 (n1)"));
  EXPECT_EQ(Differences(lines).size(), 3U);
}

TEST(NodeLines, DifferencesThatMeanNothingAreNotOdd) {
  FakeJob job(2);
  job.info[0].memory_bytes -= 2LL << 30;
  job.info[0].details = {{"CPUs of this job", "0-7"}, {"NUMA node 0", "CPUs 0-7, 1.0 GiB"}};
  job.info[1].details = {{"CPUs of this job", "8-15"}, {"NUMA node 0", "CPUs 0-7, 1.1 GiB"}};
  const std::vector<SiteReportField> lines = NodeLines(job.info);
  EXPECT_EQ(Of("CPUs of this job", lines).size(), 2U);
  EXPECT_TRUE(Differences(lines).empty());
}

TEST(NodeLines, OfNodesWithoutAnAnswerAreLeftOut) {
  FakeJob job(3);
  job.info[1] = NodeInfo();
  EXPECT_THAT(Of("kernel", NodeLines(job.info)), ElementsAre("4.18.0"));
  EXPECT_TRUE(NodeLines({NodeInfo()}).empty());
}

TEST(OddVerdicts, AreAllButTheGoodOnes) {
  FakeJob job(2);
  EXPECT_TRUE(OddVerdicts(CheckNodes(job.job, job.info)).empty());
  job.info[1].memlock_bytes = 65536;
  const std::vector<SiteReportField> odd = OddVerdicts(CheckNodes(job.job, job.info));
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_EQ(odd[0].name, "memlock");
  EXPECT_THAT(odd[0].text, StartsWith("fail: InfiniBand needs locked memory"));
}

Redaction OfAlice() {
  return {"/nobackup/users/alice", "alice", [](const std::string& name) { return name == "bob"; }};
}

TEST(Redaction, ShortensTheOwnHome) {
  const auto hidden = [](const std::string& text) { return WithoutNames(text, OfAlice()); };
  EXPECT_EQ(hidden("/nobackup/users/alice"), "~");
  EXPECT_EQ(hidden("/nobackup/users/alice/site.yaml:3: wrong"), "~/site.yaml:3: wrong");
  EXPECT_EQ(hidden("in '/nobackup/users/alice/a', /nobackup/users/alice/b"), "in '~/a', ~/b");
}

TEST(Redaction, LeavesNoNameOfAUserInAPath) {
  const auto hidden = [](const std::string& text) { return WithoutNames(text, OfAlice()); };
  EXPECT_EQ(hidden("/nobackup/users/alicetoo/x"), "/nobackup/users/.../x");
  EXPECT_EQ(hidden("/home/carol"), "/home/...");
  EXPECT_EQ(hidden("/users/carol/mpi/bin"), "/users/.../mpi/bin");
  EXPECT_EQ(hidden("/scratch/alice/run"), "/scratch/.../run");
  EXPECT_EQ(hidden("/scratch/bob/run"), "/scratch/.../run");
  EXPECT_EQ(hidden("LD=/scratch/bob:/scratch/bob"), "LD=/scratch/...:/scratch/...");
}

TEST(Redaction, LeavesEverythingElse) {
  for (const char* text : {"", "/", "/opt/openmpi/bin/mpirun", "100 Gbit/s, 8/16 lanes",
                           "alice/bob", "//opt//x/", "bob"}) {
    EXPECT_EQ(WithoutNames(text, OfAlice()), text);
  }
  // The home of root is below the root, in which nobody else has one.
  EXPECT_EQ(WithoutNames("/root/x /opt/x", {"/root", ""}), "~/x /opt/x");
  EXPECT_EQ(WithoutNames("/opt/x", {"/", ""}), "/opt/x");
  EXPECT_EQ(WithoutNames("/opt/x", {}), "/opt/x");
}

TEST(Redaction, KnowsHarmlessVariablesByName) {
  EXPECT_TRUE(IsKnownVariable("NCCL_IB_HCA"));
  EXPECT_FALSE(IsKnownVariable("NCCL_IB_HCA_TOKEN"));
  for (const char* name : {"HF_TOKEN", "PATH", "HOME", "LD_LIBRARY_PATH", "SLURM_JOB_ACCOUNT",
                           "SLURM_JOB_USER", "OMPI_MCA_plm_rsh_args", "SSH_AUTH_SOCK"}) {
    EXPECT_FALSE(IsKnownVariable(name)) << name;
  }
  EXPECT_TRUE(IsNamedVariable("UCX_ANYTHING"));
  EXPECT_TRUE(IsNamedVariable("LD_PRELOAD"));
  EXPECT_FALSE(IsNamedVariable("HF_TOKEN"));
  EXPECT_FALSE(IsNamedVariable("UCX_ \n"));
}

TEST(Redaction, LeavesNamesOfMpiArguments) {
  EXPECT_THAT(WithoutValues({"-x", "TOKEN=abc", "-x", "NAME", "--mca", "btl", "tcp,self", "--mca",
                             "plm_rsh_args", "-i key", "--timeout=30", "-n", "4", "secret"}),
              ElementsAre("-x", "TOKEN=...", "-x", "NAME", "--mca", "btl", "tcp,self", "--mca",
                          "plm_rsh_args", "...", "--timeout=...", "-n", "4", "..."));
  EXPECT_THAT(WithoutValues({"secret", "--mca", "secret"}), ElementsAre("...", "--mca", "..."));
  EXPECT_THAT(WithoutValues({"-x"}), ElementsAre("-x"));
}

TEST(Redaction, TakesTheValueOutOfARejection) {
  EXPECT_EQ(WithoutQuotedValue("s.yaml:1: pmi must be auto or none, not 'abc'"),
            "s.yaml:1: pmi must be auto or none, and is not");
  EXPECT_EQ(WithoutQuotedValue("s.yaml:1: unknown key 'a'"), "s.yaml:1: unknown key 'a'");
  EXPECT_EQ(WithoutQuotedValue("s.yaml:2: 'A_KEY=plum' is no name of a variable"),
            "s.yaml:2: 'A_KEY=...' is no name of a variable");
  EXPECT_EQ(WithoutQuotedValue("unknown key 'A=plum'; take 'b=c' and 'd"),
            "unknown key 'A=...'; take 'b=...' and 'd");
}

std::string Joined(const std::vector<SiteReportField>& lines) {
  std::string text;
  for (const SiteReportField& line : lines) text += line.name + ": " + line.text + "\n";
  return text;
}

TEST(SettingsLines, HaveNoValueThatMayBeSecret) {
  const SiteConfig site = ParseSiteConfig(
      "launcher: local\n"
      "mpi_arguments: [-x, API_KEY=plum, --mca, plm_rsh_args, pear, --mca, pml, ucx]\n"
      "environment: {HF_TOKEN: apple, NCCL_IB_HCA: mlx5_0}\n"
      "srun_arguments: [--container-image=kiwi, --comment, fig]\n",
      "site.yaml");
  const Environment environment = {{"WANDB_API_KEY", "cherry"}, {"NCCL_DEBUG", "INFO"}};
  const Settings settings = MergeSettings(
      ParseOptions({"-x", "MY_SECRET=grape", "--mpiarg", "-x OTHER=melon"}), site, environment);
  const std::string text = Joined(SettingsLines(settings)) + Joined(VariableLines(environment));
  for (const char* secret : {"plum", "pear", "apple", "cherry", "grape", "melon", "kiwi", "fig"}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(text, HasSubstr("launcher: local  # site.yaml:1\n"));
  EXPECT_THAT(text, HasSubstr("mpi_arguments: -x API_KEY=... --mca plm_rsh_args ... "
                              "--mca pml ucx  # site.yaml:2\n"));
  EXPECT_THAT(text, HasSubstr("srun_arguments: --container-image=... --comment ...  # "
                              "site.yaml:4\n"));
  EXPECT_THAT(text, HasSubstr("environment.HF_TOKEN: ...  # site.yaml:3\n"));
  EXPECT_THAT(text, HasSubstr("environment.NCCL_IB_HCA: mlx5_0  # site.yaml:3\n"));
  EXPECT_THAT(text, HasSubstr("environment.MY_SECRET: ...  # command line\n"));
  EXPECT_THAT(text, HasSubstr("NCCL_DEBUG: INFO\n"));
}

TEST(VariableLines, NameOthersThatMatterAndNoMore) {
  EXPECT_EQ(Joined(VariableLines({{"LD_PRELOAD", "x"}, {"UCX_OWN", "y"}, {"PASSWORD", "z"}})),
            "set, value withheld: LD_PRELOAD, UCX_OWN\n");
  EXPECT_TRUE(VariableLines({{"PASSWORD", "z"}}).empty());
}

SiteReport Example() {
  return {"2026-11-27 09:30:00 UTC",
          {{"Nodes", {{"SMT", "on", {"n1", "n2"}}, {"a longer name", "two\nlines\x1b"}}}}};
}

TEST(SiteReport, AsTextHasOneLineForEach) {
  EXPECT_EQ(ReportAsText(Example()),
            "ddlrun --site-report, 2026-11-27 09:30:00 UTC\n"
            "\n"
            "Nodes\n"
            "  SMT            on (n[1-2])\n"
            "  a longer name  two lines\n");
}

TEST(SiteReport, AsTextHasTheFirstOfManyKinds) {
  SiteReport report = Example();
  std::vector<SiteReportField>& lines = report.parts[0].lines;
  lines.clear();
  for (const char host : std::string("abcdefgh")) lines.push_back({"CPU", "x", {{host}}});
  lines.push_back({"GPU", "y", {"a"}});
  const std::string whole = ReportAsText(report);
  EXPECT_THAT(whole, AllOf(HasSubstr("x (h)\n"), HasSubstr("y (a)\n"), Not(HasSubstr("more"))));
  lines.insert(lines.begin() + 8, 2, {"CPU", "x", {"i"}});
  EXPECT_THAT(ReportAsText(report),
              AllOf(HasSubstr("x (h)\n  CPU  2 more, see --site-report=json\n  GPU  y (a)\n"),
                    Not(HasSubstr("x (i)"))));
  EXPECT_THAT(ReportAsJson(report), HasSubstr("\"i\""));
}

TEST(SiteReport, AsJsonHasItsNumberAndEachHost) {
  const auto read = nlohmann::json::parse(ReportAsJson(Example()));
  EXPECT_EQ(read.at("format"), 1);
  EXPECT_EQ(read.at("time"), "2026-11-27 09:30:00 UTC");
  const auto& lines = read.at("parts").at(0).at("lines");
  EXPECT_EQ(lines.at(0).at("hosts").at(1), "n2");
  EXPECT_EQ(lines.at(0).at("text"), "on");
  EXPECT_FALSE(lines.at(1).contains("hosts"));
}

TEST(SiteReport, AsJsonIsAsciiWhateverADriverSays) {
  SiteReport report = Example();
  report.parts[0].lines[0].text = "caf\xe9";
  for (const char letter : ReportAsJson(report)) EXPECT_GE(letter, 0);
}

TEST(SiteReport, HidesNamesInEveryText) {
  SiteReport report = Example();
  report.parts[0].lines[1].text = "/home/alice/x";
  Redaction redaction{.home = "/home/alice"};
  EXPECT_EQ(Redacted(report, redaction).parts[0].lines[1].text, "~/x");
  EXPECT_EQ(Redacted(report, redaction).parts[0].lines[0].text, "on");
}

TEST(ConfigurationLines, HaveWhatDecidesHowRanksStart) {
  const std::vector<SiteReportField> lines = ConfigurationLines(
      "Configuration data as of 2026-11-27T09:30:00\n"
      "AccountingStoragePass   = secret\n"
      "MpiDefault              = pmix\n"
      "MpiParams               = (null)\n"
      "SlurmctldHost[0]        = master(10.0.0.1)\n"
      "TaskPlugin              = task/affinity,task/cgroup\n"
      "SwitchType              = \n"
      "\nCgroup Support Configuration:\n"
      "ConstrainDevices        = yes\n");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].name, "MpiDefault");
  EXPECT_EQ(lines[0].text, "pmix");
  EXPECT_EQ(lines[1].text, "task/affinity,task/cgroup");
  EXPECT_EQ(lines[2].name, "ConstrainDevices");
}

}  // namespace
}  // namespace launcher
