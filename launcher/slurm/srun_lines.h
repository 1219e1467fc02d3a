// SPDX-License-Identifier: Apache-2.0
//
// Reads what srun, and slurmstepd through it, say on standard error about the step and its tasks.
// Each function takes one line without its end.  Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/protocol/rank_exit.h"

namespace launcher {

// The end of a task as srun reports it: "srun: error: n2: task 3: Killed", or "... tasks 4,6:
// Exited with exit code 2", of which it is the first task.  Where the shim of a rank was killed as
// well, there is no other report of its end.  The pid is 0, since srun does not say it.  nullopt
// for any other line.
std::optional<RankExit> ParseSrunError(std::string_view line);

// All tasks of such a line, "tasks 4,6-9".  None for any other line.
std::vector<RankRange> ParseSrunTasks(std::string_view line);

// The node that is gone, as srun reports it: "srun: error: Node failure on n2", or "... Task launch
// for StepId=4.0 failed on node n2: Communication connection failure".  nullopt for any other line.
std::optional<std::string> ParseLostNode(std::string_view line);

// Why Slurm ends the step: " DUE TO TIME LIMIT" for "slurmstepd: error: *** STEP 4.0 ON n1
// CANCELLED AT 2026-11-22T12:13:22 DUE TO TIME LIMIT ***"; "" for such a line without a reason, as
// after scancel, and for "srun: Job step aborted: Waiting up to 32 seconds for job step to
// finish.".  nullopt for any other line.
std::optional<std::string> ParseCancelled(std::string_view line);

// Whether srun says that Slurm cannot bind tasks here.  ddlrun has told it not to bind any.
bool IsRemarkOnBinding(std::string_view line);

// Whether srun says that it does not wait any longer for the end of a step whose daemons do not
// answer.
bool IsStepLeft(std::string_view line);

// kWaiting for "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are
// busy)", and kGranted for "srun: Step created for StepId=7.1", which follows when they are free.
// nullopt for any other line.
enum class StepCreation { kWaiting, kGranted };
std::optional<StepCreation> ParseStepCreation(std::string_view line);

}  // namespace launcher
