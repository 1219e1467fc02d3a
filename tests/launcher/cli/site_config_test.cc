// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/site_config.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include "launcher/base/error.h"
#include "tests/support/directories.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

std::string MessageOf(const std::string& text) {
  return tests::Rejection<LaunchError>(
      EX_CONFIG, [&] { ParseSiteConfig(text, "site.yaml"); }, "accepted");
}

TEST(SiteConfig, DescribesTheMachineForPredictions) {
  const SiteConfig site = ParseSiteConfig(
      "machine:\n  gpu: V100-SXM2-32GB\n  gpus_per_node: 4\n  inside: xbus\n  adapters: 2\n"
      "  adapter_gbits: 100\n  file_system_gbs: 10\n",
      "site.yaml");
  EXPECT_EQ(site.machine.gpu, "V100-SXM2-32GB");
  EXPECT_EQ(site.machine.gpus_per_node, 4);
  EXPECT_EQ(site.machine.inside, "xbus");
  EXPECT_EQ(site.machine.adapters, 2);
  EXPECT_EQ(site.machine.adapter_gbits, 100);
  EXPECT_EQ(site.machine.file_system_gbs, 10);
}

TEST(SiteConfig, RejectsAMachineThatIsNone) {
  EXPECT_EQ(MessageOf("machine: V100\n"),
            "site.yaml:1: machine must be a map: {gpu: V100, adapters: 2}");
  EXPECT_EQ(MessageOf("machine:\n  adaptors: 2\n"),
            "site.yaml:2: unknown key 'machine.adaptors'; did you mean 'adapters'?");
  EXPECT_EQ(MessageOf("machine: {adapters: many}\n"),
            "site.yaml:1: machine.adapters must be a whole number from 1 to 64");
  EXPECT_EQ(MessageOf("machine: {adapters: 1, adapters: 2}\n"),
            "site.yaml:1: machine.adapters is given twice");
}

TEST(SiteConfig, HasLimitsOfChecks) {
  const SiteConfig site = ParseSiteConfig("check_limits:\n  clock_seconds: 2.5\n", "site.yaml");
  EXPECT_EQ(site.check_limits.at("clock_seconds").value, "2.5");
  EXPECT_EQ(site.check_limits.at("clock_seconds").line, 2);
  EXPECT_EQ(MessageOf("check_limits: 2\n"),
            "site.yaml:1: check_limits must be a map: {clock_seconds: 2}");
  EXPECT_EQ(MessageOf("check_limits: {clock_second: 2}\n"),
            "site.yaml:1: unknown key 'check_limits.clock_second'; did you mean 'clock_seconds'?");
  for (const char* const wrong : {"much", "-1", "2e6", "nan"}) {
    EXPECT_EQ(MessageOf(std::string("check_limits: {shm_gib: ") + wrong + "}\n"),
              "site.yaml:1: check_limits.shm_gib must be a number from 0 to 1e6");
  }
}

TEST(SiteConfig, ReadsEveryKeyWithItsLine) {
  const SiteConfig site = ParseSiteConfig(
      "# a comment\n"
      "launcher: mpirun\n"
      "mpirun: /opt/openmpi/bin/mpirun\n"
      "mpi_arguments: [--mca, btl, 'tcp,self']\n"
      "environment:\n"
      "  NCCL_IB_HCA: \"=mlx5_0:1\"\n"
      "  NCCL_DEBUG: INFO\n"
      "bind: none\n"
      "rank_order: cyclic\n"
      "gpu_visibility: rank\n"
      "run_directory: /local\n"
      "grace_seconds: 20\n"
      "start_seconds: 600\n"
      "min_nodes: 2\n"
      "pmi: none\n"
      "srun_arguments: [--network, sn_all]\n",
      "site.yaml");
  EXPECT_THAT(site.srun_arguments->value, ElementsAre("--network", "sn_all"));
  EXPECT_EQ(site.launcher->value, "mpirun");
  EXPECT_EQ(site.launcher->line, 2);
  EXPECT_EQ(site.mpirun->value, "/opt/openmpi/bin/mpirun");
  EXPECT_THAT(site.mpi_arguments->value, ElementsAre("--mca", "btl", "tcp,self"));
  EXPECT_EQ(site.environment.at("NCCL_IB_HCA").value, "=mlx5_0:1");
  EXPECT_EQ(site.environment.at("NCCL_DEBUG").line, 7);
  EXPECT_EQ(site.bind->value, "none");
  EXPECT_EQ(site.rank_order->value, "cyclic");
  EXPECT_EQ(site.gpu_visibility->value, "rank");
  EXPECT_EQ(site.run_directory->value, "/local");
  EXPECT_EQ(site.grace_seconds->value, 20);
  EXPECT_EQ(site.start_seconds->value, 600);
  EXPECT_EQ(site.min_nodes->value, 2);
  EXPECT_EQ(site.pmi->value, "none");
}

TEST(SiteConfig, NumbersWithZerosInFrontAreDecimal) {
  EXPECT_EQ(ParseSiteConfig("grace_seconds: 010\n", "site.yaml").grace_seconds->value, 10);
  EXPECT_EQ(ParseSiteConfig("start_seconds: 0\n", "site.yaml").start_seconds->value, 0);
  EXPECT_EQ(ParseSiteConfig("start_seconds: '3600'\n", "site.yaml").start_seconds->value, 3600);
}

TEST(SiteConfig, OneDocumentMayBeMarked) {
  EXPECT_EQ(ParseSiteConfig("---\nlauncher: local\n...\n", "site.yaml").launcher->value, "local");
  EXPECT_EQ(ParseSiteConfig("launcher: local\n---\n", "site.yaml").launcher->value, "local");
}

// A parser that is asked for all documents of this text is asked for ever, and it loads nothing.
TEST(SiteConfig, RejectsWhatTheParserDoesNotGetPast) {
  EXPECT_EQ(MessageOf(", btl]\ngr~ace_seco\304nds:*a}\n"),
            "site.yaml:1: a site file does not begin with a comma");
}

TEST(SiteConfig, AnEmptyFileSetsNothing) {
  EXPECT_FALSE(ParseSiteConfig("# nothing\n", "site.yaml").launcher.has_value());
}

TEST(SiteConfig, RejectsAnUnknownKeyWithItsLineAndTheNearestOne) {
  EXPECT_EQ(MessageOf("launcher: auto\nmpi_argument: [a]\n"),
            "site.yaml:2: unknown key 'mpi_argument'; did you mean 'mpi_arguments'?");
  EXPECT_THAT(MessageOf("? [a]\n: b\n"),
              StartsWith("site.yaml:1: unknown key ''; take it out, or use the version of ddlrun "
                         "that has it; this one has bind, check, check_limits, "));
}

TEST(SiteConfig, RejectsAKeyGivenTwice) {
  EXPECT_EQ(MessageOf("bind: auto\nbind: none\n"), "site.yaml:2: bind is given twice");
  EXPECT_EQ(MessageOf("environment:\n  A: 1\n  A: 2\n"),
            "site.yaml:3: environment.A is given twice");
}

TEST(SiteConfig, RejectsWrongTypesWithTheLine) {
  for (const char* const nodes : {"0", "-1", "two", "[2]", "99999999999"}) {
    EXPECT_EQ(MessageOf(std::string("min_nodes: ") + nodes + "\n"),
              "site.yaml:1: min_nodes must be a whole number of nodes from 1");
  }
  EXPECT_EQ(MessageOf("launcher: [mpirun]\n"), "site.yaml:1: launcher must be a text");
  EXPECT_EQ(MessageOf("\nlauncher: ssh\n"),
            "site.yaml:2: launcher must be auto or srun or mpirun or local or hydra, not 'ssh'");
  EXPECT_EQ(MessageOf("pmi: pmi1\n"),
            "site.yaml:1: pmi must be auto or pmix or pmi2 or none, not 'pmi1'");
  EXPECT_EQ(MessageOf("mpi_arguments: --mca\n"),
            "site.yaml:1: mpi_arguments must be a list of texts: [a, b]");
  EXPECT_EQ(MessageOf("environment: [A]\n"),
            "site.yaml:1: environment must be a map of texts: {NAME: value}");
  EXPECT_EQ(MessageOf("environment: {A: {B: c}}\n"), "site.yaml:1: environment.A must be a text");
  EXPECT_EQ(MessageOf("environment: {A=B: c}\n"), "site.yaml:1: 'A=B' is no name of a variable");
  EXPECT_EQ(MessageOf("grace_seconds: -1\n"),
            "site.yaml:1: grace_seconds must be a whole number of seconds from 0 to 3600");
  for (const char* text : {"20s", "0x10", "1.5", "3601", "''", "[20]"}) {
    EXPECT_EQ(MessageOf(std::string("grace_seconds: ") + text + "\n"),
              "site.yaml:1: grace_seconds must be a whole number of seconds from 0 to 3600");
  }
  EXPECT_EQ(MessageOf("environment: {A: \"x\\0y\"}\n"),
            "site.yaml:1: environment.A must be a text");
  EXPECT_EQ(MessageOf("launcher: local\n---\nlauncher: srun\n"),
            "site.yaml:3: a second document begins here, behind '---': a site file is one");
  EXPECT_EQ(MessageOf("- launcher\n"),
            "site.yaml:1: a site file is a map of keys: 'launcher: mpirun'");
}

TEST(SiteConfig, RepeatsTheBeginningOfWhatIsLong) {
  const std::string a(1000, 'a');  // YAML has no longer keys
  for (const std::string& text :
       {"launcher: " + a, a + ": 1", "check_limits: {" + a + ": 1}", "machine: {" + a + ": 1}",
        "environment: {" + a + "=: 1}", "environment: {" + a + ": [1]}",
        "environment: {" + a + ": x, " + a + ": y}"}) {
    const std::string message = tests::Rejection<LaunchError>(
        EX_CONFIG, [&] { ParseSiteConfig(text, "site.yaml"); }, "accepted");
    EXPECT_THAT(message, ::testing::HasSubstr("aaaaa... (10")) << text.substr(0, 20);
    EXPECT_LT(message.size(), 800U) << text.substr(0, 20);
  }
}

TEST(SiteConfig, RejectsWhatIsNotYamlWithTheLine) {
  EXPECT_THAT(MessageOf("launcher: auto\n  bind: [\n"), StartsWith("site.yaml:"));
  EXPECT_THAT(MessageOf("a: b: c\n"), StartsWith("site.yaml:1: "));
}

TEST(SiteConfig, RejectsHostileFiles) {
  EXPECT_EQ(MessageOf("environment: &a {A: 1}\n"),
            "site.yaml:1: no anchors (&) and aliases (*): write the value out");
  EXPECT_EQ(MessageOf("mpi_arguments: [[[[[a]]]]]\n"), "site.yaml:1: nested deeper than 4 levels");
  EXPECT_THAT(MessageOf(std::string(100000, '[')), HasSubstr("longer than 65536 bytes"));
  EXPECT_THAT(MessageOf(std::string(60000, '[')), HasSubstr("nested deeper than 4 levels"));
}

TEST(SiteConfig, NamesAFileThatCannotBeRead) {
  EXPECT_THROW(LoadSiteConfig("/nonexistent/site.yaml"), LaunchError);
  EXPECT_THROW(LoadSiteConfig("/"), LaunchError);
}

TEST(FindSiteFile, TakesAPathAsItIsANameFromTheSitesOwnAndFromTheInstalledOnes) {
  const std::string sites = tests::SourceDirectory() + "/launcher/sites";
  const std::string own = testing::TempDir() + "own_sites";
  std::filesystem::create_directories(own);
  for (const std::string name : {"bede", "site", "gpus"}) std::ofstream(own + "/" + name + ".yaml");
  struct Case {
    std::string wanted, own, found;
  };
  const std::vector<Case> cases = {{"./my", own, "./my"},
                                   {"my.yaml", own, "my.yaml"},
                                   {"bede", "/nowhere", sites + "/bede.yaml"},
                                   {"bede", own, own + "/bede.yaml"},
                                   {"gpus", own, own + "/gpus.yaml"},
                                   {"generic", own, sites + "/generic.yaml"},
                                   {"", own, own + "/site.yaml"},
                                   {"", "/nowhere", sites + "/generic.yaml"},
                                   {"", sites, sites + "/generic.yaml"}};
  for (const Case& one : cases) {
    EXPECT_EQ(FindSiteFile(one.wanted, one.own, sites), one.found) << one.wanted << one.own;
  }
  const auto rejection = [&](const std::string& name, const std::string& installed) {
    return tests::Rejection<LaunchError>([&] { FindSiteFile(name, own, installed); });
  };
  EXPECT_EQ(rejection("genric", sites),
            "no site file 'genric' in " + own + " or " + sites + "; did you mean 'generic'?");
  EXPECT_THAT(rejection("gpsu", sites), HasSubstr("did you mean 'gpus'?"));
  EXPECT_THAT(rejection("other-cluster", sites),
              HasSubstr("give a path: --site ./other-cluster.yaml"));
  EXPECT_EQ(rejection("generic", "/nowhere/sites"),
            "there are no site files in /nowhere/sites, where an installation has them: start "
            "ddlrun where it is installed, or by a link to it (ln -s) instead of a copy");
}

TEST(FindSiteFile, EveryInstalledSiteFileIsRead) {
  const std::string sites = tests::SourceDirectory() + "/launcher/sites";
  for (const std::string name : {"generic", "bede", "x86-v100"}) {
    EXPECT_EQ(LoadSiteConfig(FindSiteFile(name, "/nowhere", sites)).launcher->value, "auto")
        << name;
  }
}

}  // namespace
}  // namespace launcher
