// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/attach.h"

#include "ddlctl/options.h"
#include "tests/support/test.h"

namespace ddlctl {
namespace {

TEST(TakeProgram, TakesTheWordsBehindTheRank) {
  using Words = std::vector<std::string>;
  const struct {
    Words given, left, program;
  } kCases[] = {
      {{}, {}, {}},
      {{"why", "12", "3", "x"}, {"why", "12", "3", "x"}, {}},
      {{"attach", "12"}, {"attach", "12"}, {}},
      {{"attach", "12", "3"}, {"attach", "12", "3"}, {}},
      {{"attach", "12", "3", "gdb", "-p", "{pid}"}, {"attach", "12", "3"}, {"gdb", "-p", "{pid}"}},
      {{"attach", "--srun", "never", "12", "3", "--", "-x", "--"},
       {"attach", "--srun", "never", "12", "3"},
       {"-x", "--"}},
      {{"attach", "--srun=never", "--here", "12", "3", "ls"},
       {"attach", "--srun=never", "--here", "12", "3"},
       {"ls"}},
      {{"attach", "--srun"}, {"attach", "--srun"}, {}},
  };
  for (const auto& [given, left, program] : kCases) {
    Words arguments = given;
    EXPECT_EQ(TakeProgram(&arguments), program);
    EXPECT_EQ(arguments, left);
  }
}

TEST(CommandOfRank, HasItsNumbers) {
  EXPECT_THAT(CommandOfRank({"gdb", "-p", "{pid}", "r{rank}.{pid}{rank}", "{x}"}, 3, 77),
              ElementsAre("gdb", "-p", "77", "r3.773", "{x}"));
}

TEST(AttachCommand, SharesWhatTheRanksHold) {
  AttachOptions options;
  options.job.program = "/opt/bin/ddlctl";
  options.rank = 3;
  options.command = {"gdb", "-p", "{pid}"};
  const std::vector<std::string> rest = {
      "/opt/bin/ddlctl", "attach", "--here", "--srun=never", "12@n1:7", "3", "gdb", "-p", "{pid}"};
  std::vector<std::string> expected = {"/bin/srun",     "--overlap",  "--jobid=12",
                                       "--nodelist=n2", "--nodes=1",  "--ntasks=1",
                                       "--mem=0",       "--mpi=none", "--quiet"};
  for (const bool on_terminal : {false, true}) {
    options.on_terminal = on_terminal;
    if (on_terminal) expected.emplace_back("--pty");
    std::vector<std::string> all = expected;
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(AttachCommand("/bin/srun", "12", "n2", "12@n1:7", options), all);
  }
}

}  // namespace
}  // namespace ddlctl
