// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/redaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using ::testing::ElementsAre;

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

TEST(Redaction, TakesTheValueOutOfARefusal) {
  EXPECT_EQ(WithoutQuotedValue("s.yaml:1: pmi must be auto or none, not 'abc'"),
            "s.yaml:1: pmi must be auto or none, and is not");
  EXPECT_EQ(WithoutQuotedValue("s.yaml:1: unknown key 'a'"), "s.yaml:1: unknown key 'a'");
}

}  // namespace
}  // namespace launcher
