// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/diagnosis.h"

#include <signal.h>

#include "tests/support/test.h"

namespace launcher {
namespace {

const std::vector<std::string> kInAllReduce = {
    "all_reduce (torch/distributed/distributed_c10d.py:2501)",
    "wrapper (torch/distributed/c10d_logger.py:81)", "sync (me/job/train.py:50)",
    "<module> (me/job/train.py:90)"};

const std::vector<std::string> kInBackward = {
    "backward (dist-packages/torch/autograd/__init__.py:197)",
    "Tensor.backward (dist-packages/torch/_tensor.py:488)", "<module> (me/job/train.py:40)"};

// A process that has not moved between two looks.
ProcessFacts Still(char state, std::string call, std::string wait = "", std::string object = "",
                   std::vector<std::string> stack = {}) {
  ProcessFacts process;
  process.pid = 4711;
  process.parent = 100;
  process.name = "python3";
  process.state = state;
  process.call = std::move(call);
  process.wait = std::move(wait);
  process.object = std::move(object);
  process.is_still = true;
  process.stack = std::move(stack);
  return process;
}

ProcessFacts Receives() { return Still('S', "recvfrom", "sk_wait_data", "a socket"); }
ProcessFacts Reduces() { return Still('S', "futex", "futex_do_wait", "", kInAllReduce); }
ProcessFacts Sleeps() { return Still('S', "clock_nanosleep", "hrtimer_nanosleep"); }

ProcessFacts OnFileSystem(ProcessFacts process, std::string file_system) {
  process.file_system = std::move(file_system);
  return process;
}

ProcessFacts Moving(ProcessFacts process) {
  process.is_still = false;
  return process;
}

ProcessFacts Busy(double cpus, std::vector<std::string> stack = {}) {
  ProcessFacts process = Moving(Still(cpus > 0.9 ? 'R' : 'S', "", "", "", std::move(stack)));
  process.cpus = cpus;
  return process;
}

ProcessFacts ChildOf(const ProcessFacts& parent, ProcessFacts process) {
  process.parent = parent.pid;
  process.pid = parent.pid + 2;
  return process;
}

using Tree = std::vector<ProcessFacts>;

// Ranks 0, 1, ... of n1 and n2, two on each node, rank i with process 4711.
HangingJob JobOf(const std::vector<Tree>& ranks, int world = 0) {
  HangingJob job;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string host = "n" + std::to_string(i / 2 + 1);
    if (job.nodes.empty() || job.nodes.back().host != host) job.nodes.emplace_back().host = host;
    job.nodes.back().ranks.push_back({.rank = static_cast<int>(i),
                                      .world = world > 0 ? world : static_cast<int>(ranks.size()),
                                      .host = host,
                                      .memory_kills = 0,
                                      .processes = ranks[i]});
  }
  return job;
}

// Three ranks that are alike, and rank 3 on n2.
HangingJob WithOdd(const ProcessFacts& others, const Tree& odd) {
  return JobOf({{others}, {others}, {others}, odd});
}

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

TEST(Diagnose, NamesTheRankWhoseGpuHasReportedAnError) {
  struct Case {
    const char* name;
    Tree odd;
    const char* line;
  };
  const Case cases[] = {
      {"waits as the others do",
       {Reduces()},
       "perhaps rank 3 (n2, pid 4711): its GPU has reported an error (GPU 0000:3b:00: Xid 79); 3 "
       "other ranks wait in all_reduce (train.py:50)"},
      {"asleep",
       {Sleeps()},
       "perhaps rank 3 (n2, pid 4711): its GPU has reported an error (GPU 0000:3b:00: Xid 79); 3 "
       "other ranks wait in all_reduce (train.py:50)"},
      {"stopped",
       {Still('T', "")},
       "rank 3 (n2, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); 3 "
       "other ranks wait in all_reduce (train.py:50)"},
  };
  for (const Case& test : cases) {
    HangingJob job = WithOdd(Reduces(), test.odd);
    job.nodes[1].ranks[1].gpu_error = "GPU 0000:3b:00: Xid 79";
    EXPECT_EQ(Diagnose(job).line, test.line) << test.name;
  }
}

TEST(NeedsFunctions, IsSoWhereTheKernelDoesNotTell) {
  EXPECT_TRUE(NeedsFunctions(Receives()));
  EXPECT_TRUE(NeedsFunctions(Still('R', "")));
  EXPECT_TRUE(NeedsFunctions(Busy(0.5)));
  EXPECT_FALSE(NeedsFunctions(Busy(0.4)));
  EXPECT_FALSE(NeedsFunctions(Sleeps()));
  EXPECT_FALSE(NeedsFunctions(Still('T', "")));
  EXPECT_FALSE(NeedsFunctions(Still('S', "read", "", "/x")));
}

struct LaunchedCase {
  const char* name;
  std::vector<std::vector<CollectiveCount>> launched;  // by each rank
  const char* line;
};

TEST(Diagnose, NamesTheRankThatHasLaunchedOtherCollectives) {
  const std::vector<CollectiveCount> six = {{"AllReduce", 6}};
  const std::vector<CollectiveCount> five = {{"AllReduce", 5}};
  const std::vector<CollectiveCount> other = {{"AllGather", 1}, {"AllReduce", 5}};
  const LaunchedCase cases[] = {
      {"behind",
       {six, six, five, six},
       "perhaps rank 2 (n2, pid 4711): has launched AllReduce 5 times (others 6); 3 other ranks "
       "wait in all_reduce (train.py:50)"},
      {"ahead",
       {five, six, five, five},
       "perhaps rank 1 (n1, pid 4711): has launched AllReduce 6 times (others 5); 3 other ranks "
       "wait in all_reduce (train.py:50)"},
      {"another collective",
       {six, six, six, other},
       "perhaps rank 3 (n2, pid 4711): has launched AllGather 1 time (others 0), AllReduce 5 times "
       "(others 6); 3 other ranks wait in all_reduce (train.py:50)"},
      {"as many on both sides",
       {six, five},
       "perhaps rank 1 (n1, pid 4711): has launched AllReduce 5 times (others 6); 1 other rank "
       "waits in all_reduce (train.py:50)"},
      {"two of them",
       {five, six, six, five, six},
       "perhaps rank 0 (n1, pid 4711): has launched AllReduce 5 times (others 6); likewise rank 3; "
       "3 other ranks wait in all_reduce (train.py:50)"},
      {"all alike",
       {six, six, six},
       "all 3 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ"},
  };
  for (const LaunchedCase& test : cases) {
    HangingJob job = JobOf(std::vector<Tree>(test.launched.size(), {Reduces()}));
    for (NodeFacts& node : job.nodes) {
      for (RankFacts& rank : node.ranks) {
        // Of another communicator all have done the same.
        rank.communicators = {
            {"0x2", rank.rank, 9, six},
            {"0x1", rank.rank, 9, test.launched[static_cast<std::size_t>(rank.rank)]}};
      }
    }
    EXPECT_EQ(Diagnose(job).line, test.line) << test.name;
  }
}

TEST(Diagnose, SaysThatMemoryWasShortWhereTheKernelHasKilled) {
  ProcessFacts killed = Still('Z', "");
  killed.wait_status = SIGKILL;
  HangingJob job = WithOdd(Reduces(), {Reduces(), ChildOf(Reduces(), killed)});
  job.nodes[1].ranks[1].memory_kills = 2;
  EXPECT_THAT(Diagnose(job).line,
              HasSubstr("was killed by signal 9, as it seems for memory (oom_kill 2); 3 other"));
}

struct JobCase {
  const char* name;
  HangingJob job;
  HangCause cause;
  std::vector<int> ranks;
  bool is_sure;
  const char* line;
};

TEST(Diagnose, KnowsWhatIsNotTheFaultOfASingleRank) {
  const Tree stopped = {Still('T', "")};
  const Tree asleep = {Sleeps()};
  const Tree waits = {Reduces()};
  const Tree barrier = {Still('S', "futex", "", "", {"barrier (a.py:1)"})};
  HangingJob silent = JobOf({waits, waits}, 4);
  silent.hosts = {"n1", "n1", "n2", "n2"};
  HangingJob without_process = silent;
  without_process.nodes.push_back({.host = "n2"});
  HangingJob with_end = without_process;
  HangingJob silent_node = silent;
  silent_node.silent_nodes = {"n2"};
  with_end.ended = {{2, 0}, {3, 0}};
  HangingJob one_end = JobOf({waits, waits, waits}, 4);
  one_end.hosts = silent.hosts;
  one_end.ended = {{3, 0}};
  HangingJob lost = one_end;
  lost.ended.clear();
  HangingJob most_ended = JobOf({asleep}, 4);
  most_ended.hosts = {"n1", "n1", "n1", "n1"};
  most_ended.ended = {{1, 0}, {2, 0}, {3, 0}};
  HangingJob unseen = JobOf({waits, asleep}, 3);
  const JobCase cases[] = {
      {"all stopped",
       JobOf({stopped, stopped}),
       HangCause::kAlike,
       {},
       false,
       "all 2 ranks are stopped: no single rank is to blame; rank 0: stopped by SIGSTOP or a "
       "terminal (kill -CONT 4711 continues it)"},
      {"all asleep",
       JobOf({asleep, asleep}),
       HangCause::kAlike,
       {},
       false,
       "all 2 ranks are in the same state (asleep): no single rank is to blame; rank 0: asleep "
       "(clock_nanosleep)"},
      {"two stopped",
       JobOf({stopped, waits, waits, stopped}),
       HangCause::kStopped,
       {0, 3},
       true,
       "rank 0 (n1, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); "
       "likewise rank 3; 2 other ranks wait in all_reduce (train.py:50)"},
      {"two asleep",
       JobOf({asleep, waits, waits, asleep}),
       HangCause::kAsleep,
       {0, 3},
       false,
       "perhaps rank 0 (n1, pid 4711): asleep (clock_nanosleep); likewise rank 3; 2 "
       "other ranks wait in all_reduce (train.py:50)"},
      {"the stronger of two",
       JobOf({waits, asleep, stopped}),
       HangCause::kStopped,
       {2},
       true,
       "rank 2 (n2, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); 1 "
       "other rank waits in all_reduce (train.py:50); 1 other rank does something else (-v)"},
      {"one asleep and one busy",
       JobOf({waits, asleep, {Busy(1)}}),
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50); 1 other rank does something else (-v)"},
      {"alone",
       JobOf({asleep}),
       HangCause::kAsleep,
       {0},
       false,
       "perhaps rank 0 (n1, pid 4711): asleep (clock_nanosleep)"},
      {"alone in a collective",
       JobOf({waits}),
       HangCause::kNetwork,
       {},
       false,
       "rank 0 waits in all_reduce (train.py:50): perhaps the network, or sizes that differ"},
      {"half and half",
       JobOf({waits, waits, barrier, barrier}),
       HangCause::kUnknown,
       {},
       false,
       "all 4 ranks wait, but in 2 different places (-v shows them): perhaps they call collectives "
       "in different orders"},
      {"nodes that nobody has asked",
       silent,
       HangCause::kNetwork,
       {},
       false,
       "all 2 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ; "
       "ranks 2 and 3 were not looked at: ask on n2 too"},
      {"a node that does not answer",
       silent_node,
       HangCause::kSilentNode,
       {2, 3},
       false,
       "perhaps rank 2 (n2): its node does not answer; likewise rank 3; 2 other ranks "
       "wait in all_reduce (train.py:50)"},
      {"ranks without processes",
       without_process,
       HangCause::kMissing,
       {2, 3},
       false,
       "perhaps rank 2 (n2): no process of it was found there; likewise rank 3; 2 other "
       "ranks wait in all_reduce (train.py:50)"},
      {"half have ended",
       with_end,
       HangCause::kNetwork,
       {},
       false,
       "all 2 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ; 2 "
       "of 4 ranks have ended"},
      {"one has ended",
       one_end,
       HangCause::kEnded,
       {3},
       true,
       "rank 3 (n2): has ended with exit code 0; 3 other ranks wait in all_reduce (train.py:50)"},
      {"one is not found",
       lost,
       HangCause::kMissing,
       {3},
       false,
       "perhaps rank 3 (n2): no process of it was found there; 3 other ranks wait in all_reduce "
       "(train.py:50)"},
      {"all others have ended",
       most_ended,
       HangCause::kAsleep,
       {0},
       false,
       "perhaps rank 0 (n1, pid 4711): asleep (clock_nanosleep); 3 of 4 ranks have ended"},
      {"asleep beside one that nobody has looked at",
       unseen,
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50); rank 2 was not looked at"},
      {"all run",
       JobOf({{Moving(Reduces())}, {Moving(Sleeps())}}),
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50); all ranks ran between two looks: perhaps nothing hangs"},
      {"one does not run",
       JobOf({{Reduces()}, {Moving(Sleeps())}}),
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50)"},
      {"nobody", HangingJob{}, HangCause::kUnknown, {}, false, "no rank was found"},
  };
  for (const JobCase& test : cases) {
    const Diagnosis diagnosis = Diagnose(test.job);
    EXPECT_EQ(diagnosis.line, test.line) << test.name;
    EXPECT_STREQ(NameOf(diagnosis.cause), NameOf(test.cause)) << test.name;
    EXPECT_EQ(diagnosis.ranks, test.ranks) << test.name;
    EXPECT_EQ(diagnosis.is_sure, test.is_sure) << test.name;
  }
}

TEST(Diagnose, CutsLongListsAndMovesNoCursor) {
  std::vector<Tree> ranks(12, {Still('T', "")});
  ranks.push_back({Reduces()});
  HangingJob job = JobOf(ranks);
  job.nodes[0].ranks[0].host = "n\x1b[31m1";
  const std::string line = Diagnose(job).line;
  EXPECT_THAT(line, HasSubstr("likewise ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more; 1 other"));
  EXPECT_THAT(line, StartsWith("rank 0 (n\\x1b[31m1, pid 4711): "));
}

TEST(Diagnose, TakesGeneralNamesForCollectivesInLibrariesAlone) {
  const auto waits_in = [](const std::string& frame) {
    return Diagnose(JobOf({{Still('S', "futex", "", "", {frame})}})).cause;
  };
  EXPECT_EQ(waits_in("wait (torch/distributed/distributed_c10d.py:7)"), HangCause::kNetwork);
  EXPECT_EQ(waits_in("synchronize (torch/cuda/__init__.py:7)"), HangCause::kNetwork);
  EXPECT_EQ(waits_in("wait (python3.12/threading.py:7)"), HangCause::kAlike);
  EXPECT_EQ(waits_in("all_reduce (me/own.py:7)"), HangCause::kNetwork);
}

TEST(RankTable, HasEachRankAndWhatCouldNotBeSeen) {
  HangingJob job = JobOf({{Receives()}, {Still('T', "")}}, 3);
  job.hosts = {"n1", "n1", "n9"};
  job.nodes[0].notes = {"no py-spy is in PATH"};
  EXPECT_EQ(RankTable(job),
            "  rank host                  pid state  CPUs what\n"
            "     0 n1                   4711 S       0.0 waits: recvfrom of a socket\n"
            "     1 n1                   4711 T       0.0 stopped by SIGSTOP or a terminal (kill "
            "-CONT 4711 continues it)\n"
            "     2 n9                      - -         - not looked at\n"
            "n1: no py-spy is in PATH\n");
}

}  // namespace
}  // namespace launcher
