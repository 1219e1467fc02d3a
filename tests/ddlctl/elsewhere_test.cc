// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/elsewhere.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddlctl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const trainer::ControlAddress kThere = {.host = "n2.example.org",
                                        .node = "n2",
                                        .job = "17",
                                        .pid = 1,
                                        .socket = "/tmp/s",
                                        .last = std::nullopt};

TEST(SrunCommand, RunsTheSameThereAndNoFurther) {
  const RemoteCall call = {"/opt/bin/ddlctl", {"pause", "my run"}, "17", false};
  EXPECT_THAT(SrunCommand(kThere, call),
              ElementsAre("srun", "--overlap", "--jobid=17", "--nodelist=n2", "--nodes=1",
                          "--ntasks=1", "--mem=0", "--gres=none", "--mpi=none", "--quiet",
                          "--input=none", "/opt/bin/ddlctl", "pause", "my run", "--srun=never"));
}

TEST(SrunCommand, HasATerminalWhereItDraws) {
  const auto command = SrunCommand(kThere, {"/ddlctl", {"watch", "RUN"}, "17", true});
  EXPECT_THAT(command, Contains("--pty"));
  EXPECT_THAT(command, Not(Contains("--input=none")));
}

TEST(SrunCommand, NamesTheHostWhereTheJobNamesNoNode) {
  trainer::ControlAddress address = kThere;
  address.node = "";
  EXPECT_THAT(SrunCommand(address, {"/ddlctl", {"status", "RUN"}, "9", false}),
              Contains("--nodelist=n2.example.org"));
}

TEST(SrunCommand, IsNoneWithoutAJob) {
  EXPECT_THAT(SrunCommand(kThere, {"/ddlctl", {"status", "RUN"}, "", false}), IsEmpty());
}

TEST(WhatToType, CanBePastedIntoAShell) {
  EXPECT_EQ(WhatToType(kThere, {"/ddlctl", {"status", "my run"}, "", false}),
            "log in to n2.example.org and type: ddlctl status 'my run'");
}

}  // namespace
}  // namespace ddlctl
