// SPDX-License-Identifier: Apache-2.0

#include <signal.h>

#include "launcher/diagnose/diagnosis.h"
#include "tests/launcher/diagnose/hanging_job.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

struct OddCase {
  const char* name;
  ProcessFacts others;
  Tree odd;
  HangCause cause;
  bool is_sure;
  const char* line;
};

TEST(Diagnose, NamesTheOddRankAndWhatHoldsItUp) {
  const std::vector<std::string> in_backoff = {"backoff (me/job/train.py:12)"};
  const ProcessFacts shell = Still('S', "wait4", "do_wait");
  ProcessFacts traced = Still('t', "", "ptrace_stop");
  traced.tracer = 99;
  ProcessFacts killed = Still('Z', "");
  killed.wait_status = SIGKILL;
  ProcessFacts ended = Still('Z', "");
  ProcessFacts worker = Still('D', "read", "rpc_wait_bit_killable", "/data/x");
  worker.thread = 4720;
  ProcessFacts driver = Still('D', "ioctl", "", "/dev/nvidia0", kInAllReduce);
  driver.thread = 4712;
  const OddCase cases[] = {
      {"stopped",
       Reduces(),
       {Still('T', "", "do_signal_stop")},
       HangCause::kStopped,
       true,
       "rank 3 (n2, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); 3 "
       "other ranks wait in all_reduce (train.py:50)"},
      {"stopped while others compute",
       Busy(1),
       {Still('T', "")},
       HangCause::kStopped,
       true,
       "rank 3 (n2, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); 3 "
       "other ranks do something else (-v)"},
      {"debugger",
       Receives(),
       {traced},
       HangCause::kStopped,
       true,
       "rank 3 (n2, pid 4711): held by a debugger (process 99); 3 other ranks wait (recvfrom)"},
      {"worker stopped",
       Receives(),
       {Receives(), ChildOf(Receives(), Still('T', ""))},
       HangCause::kStopped,
       false,
       "perhaps rank 3 (n2, pid 4711): its process 4713 (python3) is stopped by SIGSTOP or a "
       "terminal (kill -CONT 4713 continues it); 3 other ranks wait (recvfrom)"},
      {"worker stopped of a rank that needs none",
       Reduces(),
       {Reduces(), ChildOf(Reduces(), Still('T', ""))},
       HangCause::kNetwork,
       false,
       "all 4 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ"},
      {"a thread in the driver",
       Reduces(),
       {driver},
       HangCause::kUninterruptible,
       false,
       "perhaps rank 3 (n2, pid 4711): cannot be interrupted in ioctl of /dev/nvidia0 in "
       "all_reduce "
       "(distributed_c10d.py:2501) (thread 4712); 3 other ranks wait in all_reduce (train.py:50)"},
      {"in a collective, and uninterruptible",
       Reduces(),
       {Still('D', "ioctl", "", "/dev/nvidia0", kInAllReduce)},
       HangCause::kUninterruptible,
       true,
       "rank 3 (n2, pid 4711): cannot be interrupted in ioctl of /dev/nvidia0 in all_reduce "
       "(distributed_c10d.py:2501); 3 other ranks wait in all_reduce (train.py:50)"},
      {"file system",
       Receives(),
       {OnFileSystem(Still('D', "read", "rpc_wait_bit_killable", "/home/me/x"), "nfs4 at /home")},
       HangCause::kUninterruptible,
       true,
       "rank 3 (n2, pid 4711): cannot be interrupted in read of /home/me/x on nfs4 at /home; 3 "
       "other ranks wait (recvfrom)"},
      {"disk that is only slow",
       Receives(),
       {Moving(Still('D', "read", "io_schedule", "/x"))},
       HangCause::kUnknown,
       false,
       "perhaps rank 3 (n2, pid 4711): in read of /x; 3 other ranks wait (recvfrom)"},
      {"a thread of a worker",
       Receives(),
       {Receives(), ChildOf(Receives(), worker)},
       HangCause::kUninterruptible,
       false,
       "perhaps rank 3 (n2, pid 4711): its process 4713 (python3) cannot be interrupted in read of "
       "/data/x (thread 4720); 3 other ranks wait (recvfrom)"},
      {"FIFO",
       Receives(),
       {Still('S', "open", "wait_for_partner", "/tmp/ff")},
       HangCause::kOpens,
       true,
       "rank 3 (n2, pid 4711): opens the FIFO /tmp/ff, whose other end nobody opens; 3 other ranks "
       "wait (recvfrom)"},
      {"FIFO, without ptrace",
       Receives(),
       {Still('S', "", "wait_for_partner")},
       HangCause::kOpens,
       true,
       "rank 3 (n2, pid 4711): opens a FIFO, whose other end nobody opens; 3 other ranks "
       "wait (recvfrom)"},
      {"FIFO below a shell",
       Receives(),
       {shell, ChildOf(shell, Still('S', "open", "wait_for_partner", "/tmp/ff"))},
       HangCause::kOpens,
       true,
       "rank 3 (n2, pid 4711): its process 4713 (python3) opens the FIFO /tmp/ff, whose other end "
       "nobody opens; 3 other ranks wait (recvfrom)"},
      {"file that does not open",
       Receives(),
       {OnFileSystem(Still('S', "open", "request_wait_answer", "/m/x"), "fuse at /m")},
       HangCause::kOpens,
       true,
       "rank 3 (n2, pid 4711): opens /m/x on fuse at /m; 3 other ranks wait (recvfrom)"},
      {"pipe, others perhaps of another job",
       Receives(),
       {Still('S', "read", "anon_pipe_read", "a pipe")},
       HangCause::kPipe,
       false,
       "perhaps rank 3 (n2, pid 4711): reads a pipe, into which nobody writes; 3 other ranks wait "
       "(recvfrom)"},
      {"pipe",
       Reduces(),
       {Still('S', "write", "pipe_write", "/tmp/ff")},
       HangCause::kPipe,
       true,
       "rank 3 (n2, pid 4711): writes the FIFO /tmp/ff, which nobody reads; 3 other ranks wait in "
       "all_reduce (train.py:50)"},
      {"pipe that moves",
       Reduces(),
       {Moving(Still('S', "read", "pipe_read", "a pipe"))},
       HangCause::kUnknown,
       false,
       "perhaps rank 3 (n2, pid 4711): in read of a pipe; 3 other ranks wait in all_reduce "
       "(train.py:50)"},
      {"lock",
       Reduces(),
       {OnFileSystem(Still('S', "flock", "locks_lock_inode_wait", "/l"), "ext4 at /")},
       HangCause::kLock,
       true,
       "rank 3 (n2, pid 4711): waits for the lock of /l on ext4 at /; 3 other ranks wait in "
       "all_reduce (train.py:50)"},
      {"terminal",
       Reduces(),
       {Still('S', "read", "n_tty_read", "a terminal")},
       HangCause::kTerminal,
       true,
       "rank 3 (n2, pid 4711): waits for its terminal; 3 other ranks wait in all_reduce "
       "(train.py:50)"},
      {"asleep",
       Reduces(),
       {Still('S', "clock_nanosleep", "", "", in_backoff)},
       HangCause::kAsleep,
       true,
       "rank 3 (n2, pid 4711): asleep (clock_nanosleep) in backoff (train.py:12); 3 other ranks "
       "wait in all_reduce (train.py:50)"},
      {"asleep, others perhaps of another job",
       Receives(),
       {Sleeps()},
       HangCause::kAsleep,
       false,
       "perhaps rank 3 (n2, pid 4711): asleep (clock_nanosleep); 3 other ranks wait (recvfrom)"},
      {"worker asleep",
       Reduces(),
       {Reduces(), ChildOf(Reduces(), Sleeps())},
       HangCause::kNetwork,
       false,
       "all 4 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ"},
      {"killed worker",
       Reduces(),
       {Reduces(), ChildOf(Reduces(), killed)},
       HangCause::kKilledChild,
       false,
       "perhaps rank 3 (n2, pid 4711): its child 4713 (python3) was killed by signal 9; 3 other "
       "ranks wait in all_reduce (train.py:50)"},
      {"killed worker whose answer it waits for",
       Reduces(),
       {Still('S', "read", "pipe_read", "a pipe"), ChildOf(Reduces(), killed)},
       HangCause::kKilledChild,
       false,
       "perhaps rank 3 (n2, pid 4711): its child 4713 (python3) was killed by signal 9; it reads a "
       "pipe, into which nobody writes; 3 other ranks wait in all_reduce (train.py:50)"},
      {"worker that has ended",
       Receives(),
       {Receives(), ChildOf(Receives(), ended)},
       HangCause::kAlike,
       false,
       "all 4 ranks wait (recvfrom): no single rank stands out; perhaps the network"},
      {"computes",
       Reduces(),
       {Busy(1, {"evaluate (me/job/train.py:91)"})},
       HangCause::kComputes,
       false,
       "perhaps rank 3 (n2, pid 4711): computes (1.0 CPUs) in evaluate (train.py:91); 3 other "
       "ranks wait in all_reduce (train.py:50)"},
      {"computes little",
       Reduces(),
       {Busy(0.5)},
       HangCause::kComputes,
       false,
       "perhaps rank 3 (n2, pid 4711): computes (0.5 CPUs); 3 other ranks wait in all_reduce "
       "(train.py:50)"},
      {"unknown call",
       Reduces(),
       {Still('S', "call 999")},
       HangCause::kUnknown,
       false,
       "perhaps rank 3 (n2, pid 4711): in call 999; 3 other ranks wait in all_reduce "
       "(train.py:50)"},
      {"other function",
       Reduces(),
       {Still('S', "poll", "", "", {"get (lib/multiprocessing/queues.py:113)"})},
       HangCause::kOutlier,
       false,
       "perhaps rank 3 (n2, pid 4711): waits in get (queues.py:113); 3 other ranks wait in "
       "all_reduce (train.py:50)"},
      {"other collective",
       Reduces(),
       {Still('S', "futex", "", "",
              {"barrier (torch/distributed/x.py:1)", "save (me/job/a.py:7)"})},
       HangCause::kOutlier,
       false,
       "perhaps rank 3 (n2, pid 4711): waits in barrier (a.py:7); 3 other ranks wait in all_reduce "
       "(train.py:50)"},
      {"own code above that of packages",
       Reduces(),
       {Still('S', "futex", "", "",
              {"Condition.wait (lib/python3.11/threading.py:320)",
               "Loader.next (site-packages/data/loader.py:9)", "Trainer.step (me/job/train.py:17)",
               "<module> (me/job/train.py:90)"})},
       HangCause::kOutlier,
       false,
       "perhaps rank 3 (n2, pid 4711): waits in Trainer.step (train.py:17); 3 other ranks wait in "
       "all_reduce (train.py:50)"},
      {"asleep while the others sum gradients",
       Still('S', "futex", "futex_do_wait", "", kInBackward),
       {Still('S', "clock_nanosleep", "", "", in_backoff)},
       HangCause::kAsleep,
       true,
       "rank 3 (n2, pid 4711): asleep (clock_nanosleep) in backoff (train.py:12); 3 other ranks "
       "wait in backward (train.py:40)"},
      {"computes gradients",
       Still('S', "futex", "futex_do_wait", "", kInBackward),
       {Busy(1, kInBackward)},
       HangCause::kComputes,
       false,
       "perhaps rank 3 (n2, pid 4711): computes (1.0 CPUs) in <module> (train.py:40); 3 other "
       "ranks "
       "wait in backward (train.py:40)"},
      {"another function of MPI, busy",
       Busy(1, {"opal_progress (libopen-pal.so.40)", "MPI_Allreduce (libmpi.so.40)", "step (job)"}),
       {Busy(1, {"poll_device (libucp.so.0)", "PMPI_Recv (libmpi.so.40)", "Exchange (job.cc:9)"})},
       HangCause::kOutlier,
       false,
       "perhaps rank 3 (n2, pid 4711): waits in PMPI_Recv (job.cc:9); 3 other ranks wait in "
       "MPI_Allreduce (step); all ranks ran between two looks: perhaps nothing hangs"},
      {"all compute, one elsewhere",
       Busy(1, {"sum (me/a.py:1)"}),
       {Busy(1, {"read (me/a.py:7)"})},
       HangCause::kOutlier,
       false,
       "perhaps rank 3 (n2, pid 4711): computes in read (a.py:7); 3 other ranks compute (sum "
       "(a.py:1)); all ranks ran between two looks: perhaps nothing hangs"},
      {"a busy wait of MPI in a collective",
       Reduces(),
       {Busy(1, kInAllReduce)},
       HangCause::kNetwork,
       false,
       "all 4 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ"},
  };
  for (const OddCase& test : cases) {
    const Diagnosis diagnosis = Diagnose(WithOdd(test.others, test.odd));
    EXPECT_EQ(diagnosis.line, test.line) << test.name;
    EXPECT_STREQ(NameOf(diagnosis.cause), NameOf(test.cause)) << test.name;
    EXPECT_EQ(diagnosis.is_sure, test.is_sure) << test.name;
    const bool is_of_none = test.cause == HangCause::kNetwork || test.cause == HangCause::kAlike;
    EXPECT_EQ(diagnosis.ranks, is_of_none ? std::vector<int>{} : std::vector<int>{3}) << test.name;
    EXPECT_EQ(diagnosis.line.find("perhaps") == std::string::npos, test.is_sure) << test.name;
  }
}

struct WorkerCase {
  const char* name;
  ProcessFacts worker;
  const char* text;
};

TEST(FindingOf, SaysWhereTheWorkerIsThatItWaitsFor) {
  const ProcessFacts loads = Still('S', "poll", "", "",
                                   {"select (lib/python3.11/selectors.py:415)",
                                    "_get_data (dist-packages/torch/utils/data/dataloader.py:1271)",
                                    "train (me/job/train.py:30)"});
  const std::vector<std::string> start = {
      "_worker_loop (dist-packages/torch/utils/data/_utils/worker.py:302)",
      "_bootstrap (lib/python3.11/multiprocessing/process.py:314)", "train (me/job/train.py:30)"};
  std::vector<std::string> loading = {"fetch (dist-packages/torch/utils/data/_utils/fetch.py:58)",
                                      "Samples.__getitem__ (me/job/data.py:12)"};
  loading.insert(loading.end(), start.begin(), start.end());
  const ProcessFacts locked = ChildOf(loads, Still('S', "futex", "", "", loading));
  ProcessFacts of_child = locked;
  of_child.parent = locked.pid;
  const WorkerCase cases[] = {
      {"waits", locked,
       " for its worker pid 4713, which waits in Samples.__getitem__ (data.py:12)"},
      {"computes", ChildOf(loads, Busy(1, loading)),
       " for its worker pid 4713, which computes in Samples.__getitem__ (data.py:12)"},
      {"has nothing to do", ChildOf(loads, Still('S', "poll", "", "", start)), ""},
      {"is no worker", ChildOf(loads, Still('S', "poll", "", "", {"main (me/job/tool.py:3)"})), ""},
      {"is not known", ChildOf(loads, Still('S', "poll")), ""},
      {"is that of a worker", of_child, ""},
  };
  for (const WorkerCase& test : cases)
    EXPECT_EQ(FindingOf({.processes = {loads, test.worker}}).worker, test.text) << test.name;
  EXPECT_EQ(FindingOf({.processes = {Reduces(), locked}}).worker, "");
  EXPECT_THAT(
      Diagnose(WithOdd(Reduces(), {loads, locked})).line,
      StartsWith("perhaps rank 3 (n2, pid 4711): waits in train (train.py:30) for its worker "
                 "pid 4713, which waits in Samples.__getitem__ (data.py:12); 3 other ranks "));
}

}  // namespace
}  // namespace launcher
