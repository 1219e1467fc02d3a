// SPDX-License-Identifier: Apache-2.0
//
// What Slurm says about the job of ddlrun while it runs, the commands that reach its steps, and the
// order to put the job into the queue again.

#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/system/child_process.h"

namespace launcher {

// scontrol: one question, or one order.

// slurmctld may take as long where it is just being restarted.
inline constexpr std::chrono::seconds kTimeoutWithScontrol{30};

struct ScontrolAnswer {
  bool is_ok = false;
  bool was_killed = false;  // a signal has ended scontrol, as when Slurm ends the job of ddlrun
  std::string text;         // all that scontrol printed, or why there is no answer, in one line
};

// Runs `scontrol` with `arguments` and waits for its end, for kTimeoutWithScontrol at most.
ScontrolAnswer RunScontrol(const std::vector<std::string>& arguments,
                           const Environment& environment);

// The same for a scontrol that was started before; null: there is none in PATH.
ScontrolAnswer AnswerOfScontrol(CommandOutput* command);

// Whether a job in this state runs.  A flag is shown in the place of the state that it is in: of
// one that is being signalled (also by preemption) or changes its size ("Job State Codes" of
// Slurm's documentation).
constexpr bool IsStateOfRunningJob(std::string_view state) {
  return state == "RUNNING" || state == "SIGNALING" || state == "RESIZING";
}

struct SlurmJob {
  std::string number;  // SLURM_JOB_ID of it
  std::string id;      // "12", or "12_3" for a task of an array, by which it alone is requeued
  std::string state;   // "RUNNING", "COMPLETING", "CANCELLED", ...
  bool may_requeue = false;
  bool is_batch = false;  // false: it was started by salloc or srun
  // Slurm takes its nodes for another job: its steps have got SIGTERM, and it ends after GraceTime.
  bool is_preempted = false;
  // sbatch --requeue=expedite, of Slurm 25.11 on: a batch script that ends with another code than 0
  // is requeued by Slurm itself, and held where all nodes are well.
  bool is_expedited = false;
  std::vector<std::string> nodes;      // without those that it has lost
  std::optional<double> seconds_left;  // until its time limit; empty: it has no limit
};

// Reads of job `number` what `scontrol --oneliner show job` prints: a line for each component of a
// heterogeneous job, of which the first counts for all but the nodes.  The last task of an array
// has the number of the whole array, and there are lines for its other tasks.  nullopt for any
// other text.  Pure.
std::optional<SlurmJob> ParseSlurmJob(const std::string& text, const std::string& number);

// The number of the job, which each task of an array has of its own; "" outside Slurm.
// SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID do not tell of which array it is a task, if any: a job
// that is submitted from within a task inherits them.  Pure.
std::string SlurmJobNumber(const Environment& environment);

// The steps that run the ranks.  `step` is what a rank reports, "12.3": the job number of the first
// component and the number of the step.  In a heterogeneous job each of `components` has a step of
// this number under a job number of its own.  Pure.
std::vector<std::string> StepsOfComponents(const std::string& step, const std::set<int>& components,
                                           const Environment& environment);

// The command that sends a signal to all ranks of `steps`, and the one that prints a line for each
// of these steps that still exists.  Empty where scancel or squeue is not in PATH.
std::vector<std::string> SignalStepCommand(const std::vector<std::string>& steps, int signal,
                                           const Environment& environment);
std::vector<std::string> ListStepsCommand(const std::vector<std::string>& steps,
                                          const Environment& environment);

// The command that prints what ParseSlurmJob reads.  Empty where scontrol is not in PATH, or
// outside Slurm.
std::vector<std::string> ShowJobCommand(const Environment& environment);

// Seconds until the end of the job's time: by SLURM_JOB_END_TIME, which newer versions of Slurm set
// (24.11, not 22.05), else as scontrol says; nullopt where there is no limit, or nobody tells it.
std::optional<double> SecondsToTimeLimit(const Environment& environment,
                                         std::chrono::system_clock::time_point now);

// With SLURM_JOB_END_TIME, as newer versions of Slurm set it, where scontrol tells a time limit.
Environment WithTimeLimit(Environment environment, std::chrono::system_clock::time_point now);

// Asks scontrol about the job.  nullopt when it does not answer.
std::optional<SlurmJob> QuerySlurmForJob(const Environment& environment);

// Why ranks cannot start on `hosts`, of which `job`, which is running, no longer has all: "job 14
// has n[1-2] now, and no longer n3: ...", and what to do.  "" where it has them, or does not run.
// Pure.
std::string RejectionOfHosts(const SlurmJob& job, const std::vector<std::string>& hosts);

// `scontrol requeue` of SlurmJob::id.  Returns "", or why Slurm refused.
std::string RequeueSlurmJob(const std::string& id, const Environment& environment);

}  // namespace launcher
