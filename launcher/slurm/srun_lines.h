// SPDX-License-Identifier: Apache-2.0
//
// What srun, and slurmstepd through it, say on standard error about the step and its tasks.  Every
// function takes one line without its end, and passes over any other line than those it names.
// Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/protocol/rank_end.h"

namespace launcher {

// The end of a task as srun tells it, "srun: error: n2: task 3: Killed" or "... tasks 4,6: Exited
// with exit code 2": of a rank whose shim was killed too there is nothing else.  The first of
// several tasks; pid is 0.  nullopt for any other line.
std::optional<RankEnd> ParseSrunError(std::string_view line);

// All tasks of such a line, "tasks 4,6-9"; none for any other line.
std::vector<RankRange> ParseSrunTasks(std::string_view line);

// The node that srun says is gone: "srun: error: Node failure on n2" or "... Task launch for
// StepId=4.0 failed on node n2: Communication connection failure".  nullopt for any other line.
std::optional<std::string> ParseLostNode(std::string_view line);

// Why Slurm ends a step, as "srun: Job step aborted: Waiting up to 32 seconds for job step to
// finish." or "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT
// 2026-11-22T12:13:22 DUE TO TIME LIMIT ***" says it: " DUE TO TIME LIMIT", or "" where no reason
// is given (scancel).  nullopt for any other line.
std::optional<std::string> ParseCancelled(std::string_view line);

// Whether srun remarks that Slurm cannot bind tasks here, which ddlrun has told it not to do
// anyway.
bool IsRemarkOnBinding(std::string_view line);

// Whether srun gives up waiting for the end of a step whose daemons do not answer.
bool IsStepLeft(std::string_view line);

// "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)", and
// "srun: Step created for StepId=7.1" once they are not.
enum class StepCreation { kWaiting, kGranted };
std::optional<StepCreation> ParseStepCreation(std::string_view line);

}  // namespace launcher
