// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/rank_event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace launcher {

RankEvent EmitRankExit(const char* key, int rank, const char* host, long pid, int wait_status,
                       const timespec& when) {
  char how[100];
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    snprintf(how, sizeof(how), "signal %d (%s)", number, strsignal(number));
  } else {
    snprintf(how, sizeof(how), "exit code %d", WEXITSTATUS(wait_status));
  }
  tm utc = {};
  gmtime_r(&when.tv_sec, &utc);
  RankEvent report;
  snprintf(report.text, sizeof(report.text),
           "ddlrun-rank[%s]: rank %d on %.255s (pid %ld) ended with %s"
           " at %d-%02d-%02dT%02d:%02d:%02d.%06ldZ\n",
           key, rank, host, pid, how, utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
           utc.tm_min, utc.tm_sec, when.tv_nsec / 1000);
  return report;
}

RankEvent EmitRankStart(const char* key, int rank) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: rank %d has started\n", key, rank);
  return report;
}

RankEvent EmitRankSuccess(const char* key, int rank) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: rank %d has ended\n", key, rank);
  return report;
}

RankEvent EmitRankGone(const char* key, int rank, int exit_code) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: rank %d is gone, %d\n", key, rank,
           exit_code);
  return report;
}

RankEvent EmitEnergy(const char* key, int rank, long long millijoules) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: rank %d has measured %lld mJ\n", key,
           rank, millijoules);
  return report;
}

RankEvent EmitLeftProcess(const char* key, int rank, const char* host, long pid, const char* name) {
  RankEvent report;
  snprintf(
      report.text, sizeof(report.text),
      "ddlrun-rank[%s]: rank %d on %.255s has left process %ld (%.15s), which SIGKILL does not "
      "end\n",
      key, rank, host, pid, name);
  return report;
}

RankEvent EmitKilledAlone(const char* key, int rank) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: rank %d was killed alone\n", key,
           rank);
  return report;
}

RankEvent EmitRankStopped(const char* key, int rank, const char* host, long pid) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text),
           "ddlrun-rank[%s]: rank %d on %.255s (pid %ld) is stopped: by SIGSTOP or by a debugger; "
           "kill -CONT %ld there continues it\n",
           key, rank, host, pid, pid);
  return report;
}

RankEvent EmitAttachment(const char* key, int rank, bool is_attached) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: rank %d is %s\n", key, rank,
           is_attached ? "attached" : "detached");
  return report;
}

RankEvent EmitRankLine(const char* key, int rank, const char* line) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: rank %d | %.*s\n", key, rank,
           static_cast<int>(kReportedLineBytes), line);
  return report;
}

RankEvent EmitStep(const char* key, const char* job, const char* step) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: step %.40s.%.40s\n", key, job, step);
  return report;
}

RankEvent EmitOutputMark(const char* key) {
  RankEvent report;
  snprintf(report.text, sizeof(report.text), "ddlrun-rank[%s]: output: ", key);
  return report;
}

RankEvent EmitFrameHead(const char* key, int rank, FrameEnd end) {
  RankEvent head;
  snprintf(head.text, sizeof(head.text), "ddlrun-rank[%s]: out:%d:%c:", key, rank, end);
  return head;
}

// What slurm/srun_lines.h and launch/mpirun_lines.h read begins so, and the refusals of shims.
bool MayBeLineOfLauncher(const char* text, size_t size) {
  constexpr const char* kBeginnings[] = {"srun: ",
                                         "srun returned ",
                                         "slurmstepd",
                                         "  Remote daemon: ",
                                         "mpirun noticed ",
                                         "mpiexec noticed ",
                                         "orterun noticed ",
                                         "prterun noticed ",
                                         "ddlrun-rank: [ERROR "};
  for (const char* beginning : kBeginnings) {
    const size_t length = strlen(beginning);
    if (memcmp(text, beginning, size < length ? size : length) == 0) return true;
  }
  return false;
}

void WriteAll(int fd, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

void LetLastLinesPass() {
  constexpr timespec kPause = {0, 50'000'000};
  nanosleep(&kPause, nullptr);
}

}  // namespace launcher
