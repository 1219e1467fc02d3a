// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/features/features.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

SiteConfig Site() {
  return ParseSiteConfig(
      "launcher: local\n"
      "bind: none\n"
      "mpi_arguments: [--site-argument]\n"
      "environment: {NCCL_IB_HCA: mlx5_0, NCCL_DEBUG: WARN}\n",
      "site.yaml");
}

TEST(Settings, CommandLineGoesBeforeSiteFileAndSiteFileBeforeDefaults) {
  const Settings settings = MergeSettings(ParseOptions({"--launcher=mpirun"}), Site(), {});
  EXPECT_EQ(settings.launcher, "mpirun");
  EXPECT_FALSE(settings.bind);
  EXPECT_EQ(settings.mpirun, "mpirun");
  EXPECT_EQ(settings.pmi, "auto");
  const std::string text = SettingsText(settings);
  EXPECT_THAT(text, AllOf(HasSubstr("launcher: mpirun"), HasSubstr("# command line")));
  EXPECT_THAT(text, AllOf(HasSubstr("# site.yaml:2"), HasSubstr("# default")));
}

TEST(Settings, OrderOfTheTopologyIsRejectedBesideHostsInAnother) {
  const auto merged = [](const std::vector<std::string>& arguments) {
    return MergeSettings(ParseOptions(arguments), SiteConfig(), {});
  };
  EXPECT_EQ(merged({"./train"}).rank_order, "auto");
  EXPECT_EQ(merged({"--rank-order=topology", "./train"}).rank_order, "topology");
  EXPECT_EQ(merged({"--rank-order=auto", "-H", "n1,n2"}).rank_order, "auto");
  const struct {
    std::vector<std::string> hosts;
    const char* named;
  } cases[] = {{{"-H", "n1,n2"}, "beside -H, "},
               {{"-hostfile", "hosts"}, "beside -hostfile, "},
               {{"--rankfile", "ranks"}, "beside --rankfile, "}};
  for (const auto& test : cases) {
    std::vector<std::string> arguments = {"--rank-order=topology"};
    arguments.insert(arguments.end(), test.hosts.begin(), test.hosts.end());
    EXPECT_THAT(tests::Rejection<LaunchError>(EX_USAGE, [&] { merged(arguments); }),
                HasSubstr(test.named));
  }
  // A site that has it means jobs whose hosts nobody names.
  SiteConfig site = ParseSiteConfig("rank_order: topology\n", "site.yaml");
  EXPECT_EQ(MergeSettings(ParseOptions({"-H", "n1"}), site, {}).rank_order, "topology");
}

TEST(Settings, MinNodesIsOfUseWhereARestartMayHaveFewerRanks) {
  const SiteConfig site = ParseSiteConfig("bind: none\nmin_nodes: 2\n", "site.yaml");
  const auto merged = [&](std::vector<std::string> arguments, const SiteConfig& config) {
    return MergeSettings(ParseOptions(arguments), config, {});
  };
  const auto shown = [&](const std::vector<std::string>& arguments) {
    return SettingsText(merged(arguments, site));
  };
  EXPECT_EQ(merged({"./train"}, SiteConfig()).min_nodes, 0);
  EXPECT_EQ(merged({"--max-restarts=1", "--min-nodes=3", "./train"}, site).min_nodes, 3);
  EXPECT_EQ(merged({"--max-restarts=1", "./train"}, site).min_nodes, 2);
  EXPECT_EQ(merged({"--check=full", "./train"}, site).min_nodes, 2);
  EXPECT_THAT(shown({"--max-restarts=1"}), ::testing::ContainsRegex("min_nodes: 2 +# site.yaml:2"));
  EXPECT_THAT(shown({"--max-restarts=1", "--min-nodes=3"}),
              ::testing::ContainsRegex("min_nodes: 3 +# command line"));
  // Each: other options, by which the site's number is not used, and the own one is refused.
  const std::vector<std::pair<std::vector<std::string>, std::string>> others = {
      {{"./train"}, "--min-nodes without --max-restarts or --check=full"},
      {{"--max-restarts=1", "-n", "4"}, "does not go with -n, which fixes the number of ranks"},
      {{"--max-restarts=1", "-H", "a,b"}, "does not go with -H: "},
      {{"--max-restarts=1", "--hostfile=h"}, "does not go with --hostfile: "},
      {{"--max-restarts=1", "--rankfile=r"}, "does not go with --rankfile, "},
      {{"--max-restarts=1", "--nodes=2"}, "does not go with --nodes, --racks and --aisles"},
      {{"--max-restarts=1", "--racks=2"}, "does not go with --nodes, --racks and --aisles"},
      {{"--max-restarts=1", "--aisles=2"}, "does not go with --nodes, --racks and --aisles"},
  };
  for (const auto& [arguments, rejection] : others) {
    EXPECT_EQ(merged(arguments, site).min_nodes, 0) << rejection;
    EXPECT_THAT(shown(arguments), ::testing::ContainsRegex("min_nodes: all +# default"));
    std::vector<std::string> with = {"--min-nodes=2"};
    with.insert(with.end(), arguments.begin(), arguments.end());
    EXPECT_THAT(tests::Rejection<LaunchError>(EX_USAGE, [&] { merged(with, site); }),
                HasSubstr(rejection));
  }
}

TEST(Settings, SiteEnvironmentYieldsToWhatTheUserHasSet) {
  const Settings settings =
      MergeSettings(ParseOptions({"-x", "NCCL_DEBUG=INFO"}), Site(), {{"NCCL_IB_HCA", "mine"}});
  EXPECT_THAT(settings.rank_settings,
              ElementsAre(std::pair<const std::string, std::string>("NCCL_DEBUG", "INFO")));
  EXPECT_THAT(SettingsText(settings), HasSubstr("environment.NCCL_IB_HCA: mine"));
}

TEST(Settings, MpiArgumentsOfTheSiteComeFirstAndThoseGivenAreSplitAtBlanks) {
  const Settings settings = MergeSettings(
      ParseOptions({"-mpiarg", "-x EGO_TOP", "-mpiarg", "--timeout", "-mpiarg", "9"}), Site(), {});
  EXPECT_THAT(settings.mpi_arguments,
              ElementsAre("--site-argument", "-x", "EGO_TOP", "--timeout", "9"));
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(Settings, SrunArgumentsOfTheSiteComeFirst) {
  const SiteConfig site = ParseSiteConfig("srun_arguments: [--network=sn_all]\n", "site.yaml");
  const Settings settings =
      MergeSettings(ParseOptions({"--srunarg", "--container-image=a.sqsh --container-mounts '/a b'",
                                  "--srunarg=-v"}),
                    site, {});
  EXPECT_THAT(settings.srun_arguments, ElementsAre("--network=sn_all", "--container-image=a.sqsh",
                                                   "--container-mounts", "/a b", "-v"));
  EXPECT_TRUE(settings.has_requested_srun_arguments);
  EXPECT_THAT(SettingsText(settings), HasSubstr("srun_arguments: --network=sn_all "));
  EXPECT_FALSE(MergeSettings(ParseOptions({}), site, {}).has_requested_srun_arguments);
}

TEST(Settings, RejectsSrunArgumentsThatDdlrunGivesItself) {
  const auto rejection = [](const std::string& argument, const std::string& site) {
    try {
      MergeSettings(ParseOptions({"--srunarg=" + argument}), ParseSiteConfig(site, "site.yaml"),
                    {});
    } catch (const LaunchError& error) {
      EXPECT_EQ(error.exit_code(), site.empty() ? EX_USAGE : EX_CONFIG);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(rejection("-v --ntasks=3", ""),
            "an argument of srun (command line), '--ntasks=3', is one that ddlrun gives itself: "
            "use -n of ddlrun");
  EXPECT_EQ(rejection("-v", "srun_arguments: [--mpi, pmi2]\n"),
            "an argument of srun (site.yaml:1), '--mpi', is one that ddlrun gives itself: use "
            "--pmi of ddlrun");
  for (const char* own :
       {"-N2", "-N", "-n3", "-wn1", "--nodelist=n1", "--cpu-bind=none", "--input=all", "-K0"}) {
    EXPECT_THAT(rejection(own, ""), HasSubstr("is one that ddlrun gives itself")) << own;
  }
  EXPECT_EQ(rejection("hostname", ""),
            "an argument of srun (command line), 'hostname', is none of its options: srun would "
            "take it, or what follows, for the program");
  for (const char* end : {"--", "-v : -n2", "-v -- x"}) {
    EXPECT_THAT(rejection(end, ""), HasSubstr("is none of its options")) << end;
  }
  EXPECT_EQ(rejection("--comment hostname", ""), "accepted") << "a value";
  for (const char* other :
       {"--network=1", "--ntasks-per-socket=1", "--exclusive", "-Cfast", "--mpix"}) {
    EXPECT_EQ(rejection(other, ""), "accepted") << other;
  }
}

TEST(Settings, ArgumentsOfIbmsMpirunAreTranslatedWithAWarning) {
  const Settings settings =
      MergeSettings(ParseOptions({"--mpiarg", "-disable_gdr -gpu"}), SiteConfig(), {});
  EXPECT_THAT(settings.mpi_arguments, ElementsAre("-x", "UCX_IB_GPU_DIRECT_RDMA=no"));
  EXPECT_THAT(settings.warnings,
              ElementsAre(HasSubstr("[WARN DDL-22-1]"), HasSubstr("[WARN DDL-22-2]")));
}

TEST(Settings, ParametersOfTheCommandLineReplaceThoseOfTheSite) {
  const SiteConfig site = ParseSiteConfig("mpi_arguments: [--mca, pml, ucx]\n", "site.yaml");
  EXPECT_THAT(
      MergeSettings(ParseOptions({"--tcp", "-mpiarg", "-pami_noib"}), site, {}).mpi_arguments,
      ElementsAre("--mca", "pml", "ob1", "--mca", "btl", "^openib,ofi,uct"));
}

TEST(Settings, TcpTurnsInfinibandOffInMpiAndNccl) {
  const Settings settings = MergeSettings(ParseOptions({"-tcp"}), SiteConfig(), {});
  EXPECT_THAT(settings.mpi_arguments,
              ElementsAre("--mca", "pml", "ob1", "--mca", "btl", "^openib,ofi,uct"));
  EXPECT_EQ(settings.rank_settings.at("NCCL_IB_DISABLE"), "1");
}

TEST(Settings, RejectsAnExportOfAVariableThatIsNotSet) {
  EXPECT_THROW(MergeSettings(ParseOptions({"-x", "NOT_SET"}), SiteConfig(), {}), LaunchError);
  EXPECT_THAT(MergeSettings(ParseOptions({"-x", "IS_SET"}), SiteConfig(), {{"IS_SET", ""}})
                  .requested_exports,
              ElementsAre("IS_SET"));
}

TEST(Settings, LimitsOfChecksAreThoseOfTheSiteElseTheDefaults) {
  const SiteConfig site = ParseSiteConfig("check_limits: {clock_seconds: 2.5}\n", "site.yaml");
  const Settings settings = MergeSettings(ParseOptions({}), site, {});
  EXPECT_EQ(settings.check_limits.clock_seconds, 2.5);
  EXPECT_EQ(settings.check_limits.link_seconds, 1);
  EXPECT_THAT(SettingsText(settings),
              ::testing::ContainsRegex("check_limits.clock_seconds: 2.5 +# site.yaml:1"));
}

TEST(SettingsText, HasNoValueThatMayBeASecret) {
  const SiteConfig site =
      ParseSiteConfig("environment: {HF_TOKEN: plum, NCCL_DEBUG: WARN}\n", "site.yaml");
  const std::string text = SettingsText(
      MergeSettings(ParseOptions({"-x", "MY_SECRET=pear", "-mpiarg", "-x A_KEY=fig -x B=2"}), site,
                    Environment{}));
  EXPECT_THAT(text, HasSubstr("environment.HF_TOKEN: ... "));
  EXPECT_THAT(text, HasSubstr("environment.MY_SECRET: ... "));
  EXPECT_THAT(text, HasSubstr("environment.NCCL_DEBUG: WARN "));
  EXPECT_THAT(text, HasSubstr("-x A_KEY=... -x B=2 "));
  for (const char* secret : {"plum", "pear", "fig"}) EXPECT_THAT(text, Not(HasSubstr(secret)));
}

}  // namespace
}  // namespace launcher
