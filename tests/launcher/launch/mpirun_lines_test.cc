// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/mpirun_lines.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

// Of Open MPI 4.1.4 and 6.0.0rc2, as they were printed.
TEST(LostDaemon, IsNamedByMpirun) {
  EXPECT_EQ(ParseLostDaemon("  Remote daemon: [[54533,0],1] on node n2"), "n2");
  EXPECT_EQ(ParseLostDaemon("  Remote daemon: [prterun-n1-321@0,1] on node gpu-a08"), "gpu-a08");
}

TEST(LostDaemon, IsNotFoundInOtherLines) {
  for (const char* line :
       {"", "  HNP daemon   : [[54533,0],0] on node n1", "Remote daemon: [[54533,0],1] on node n2",
        "  Remote daemon: [[54533,0],1] on node ", "  Remote daemon: [[54533,0],1]",
        "  Remote daemon: [[54533,0],1] on node n2 n3", "  Remote daemon: x on node n2"}) {
    EXPECT_FALSE(ParseLostDaemon(line)) << line;
  }
}

TEST(FailureOfDaemons, IsWhatMpirunSaysOfItsSrun) {
  EXPECT_TRUE(IsFailureOfDaemons("srun returned non-zero exit status (9) from launching"));
  EXPECT_FALSE(IsFailureOfDaemons("srun returned non-zero exit status (9)"));
  EXPECT_FALSE(IsFailureOfDaemons("python returned a status from launching"));
}

TEST(RemarkOnForwarding, IsThatOnTheSignalOfDdlrunAlone) {
  EXPECT_TRUE(IsRemarkOnForwarding("mpirun: Forwarding signal 23 to job"));
  EXPECT_TRUE(IsRemarkOnForwarding("prterun: Forwarding signal 23 to job"));
  for (const char* line : {"", "mpirun: Forwarding signal 10 to job", "Forwarding signal 23 to job",
                           "I say mpirun: Forwarding signal 23 to job"}) {
    EXPECT_FALSE(IsRemarkOnForwarding(line)) << line;
  }
}

TEST(MpirunNotice, IsTheEndOfARankWhoseShimWasKilledToo) {
  const auto end = ParseMpirunNotice(
      "mpirun noticed that process rank 2 with PID 77 on node n2 exited on signal 9 (Killed).");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->rank, 2);
  EXPECT_EQ(end->host, "n2");
  EXPECT_EQ(end->signal, 9);
  EXPECT_EQ(end->exit_code, 137);
  EXPECT_EQ(end->pid, 0);
  EXPECT_TRUE(ParseMpirunNotice(
      "prterun noticed that process rank 0 with PID 0 on node a.b exited on signal 11 (Segm"));
  for (const char* line : {"", "mpirun noticed that process rank 2 with PID 7",
                           "mpirun noticed that process rank x with PID 7 on node n exited on "
                           "signal 9 (Killed).",
                           "mpirun noticed that process rank 2 with PID 7 on node n exited on "
                           "signal 0 ().",
                           "python noticed that process rank 2 with PID 7 on node n exited on "
                           "signal 9 (Killed).",
                           "I say: mpirun noticed that process rank 2 with PID 7 on node n exited "
                           "on signal 9 (Killed)."}) {
    EXPECT_FALSE(ParseMpirunNotice(line)) << line;
  }
}

TEST(MpichAbort, IsTheRankWithItsExitCode) {
  const std::string abort = " in comm 0): application called MPI_Abort(MPI_COMM_WORLD, ";
  const auto end = ParseMpichAbort("Abort(259) on node 1 (rank 1" + abort + "3) - process 1");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->rank, 1);
  EXPECT_EQ(end->exit_code, 3);
  for (const std::string& line : {std::string("Abort(3) on node 1 (rank 1 in comm 0): Fatal error"),
                                  "Abort(256) on node 1 (rank 1" + abort + "0) - process 1",
                                  "I say Abort(3) on node 1 (rank 1" + abort + "3)"}) {
    EXPECT_FALSE(ParseMpichAbort(line)) << line;
  }
}

}  // namespace
}  // namespace launcher
