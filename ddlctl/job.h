// SPDX-License-Identifier: Apache-2.0
//
// Any job of ddlrun, whatever its program: found, and what it says of itself.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/protocol/job_status.h"

namespace ddlctl {

// Whether `name` is the number of a job, "12" or "12_3", and no directory: one that has such a name
// is written ./12.
bool IsJobNumber(const std::string& name);

// The directories in which a ddlrun with this environment makes its run directory, if --run-dir
// does not say another.
std::vector<std::filesystem::path> RunDirectoryBases(const launcher::Environment& environment);

// The status in the run directory `directory` of ddlrun; nullopt where there is none, which a file
// of this name that somebody else has written is not.  Throws Error(EX_DATAERR) for one of another
// format.
std::optional<launcher::JobStatus> ReadJobStatus(const std::filesystem::path& directory);

// That of the job `number` on this node, by the run directories of this user in `bases`; the newest
// of several.  `unread`, where it is not null, gets why the last one that cannot be read cannot be:
// it may be the one that was asked for.
std::optional<launcher::JobStatus> FindJobStatus(const std::string& number,
                                                 const std::vector<std::filesystem::path>& bases,
                                                 std::string* unread = nullptr);

struct RunningJob {
  std::string number;  // which a task of an array has of its own, whatever it was asked by
  std::string node;    // of its batch script, and so of ddlrun
  int nodes = 1;
};
// The job `number`, as squeue says; nullopt where there is no squeue.  Throws Error(EX_UNAVAILABLE)
// where squeue fails, or the job does not run.
std::optional<RunningJob> FindRunningJob(const std::string& number,
                                         const launcher::Environment& environment);

// When the time limit of the job `number` ends, in seconds since 1970, as squeue says.  Slurm 22.05
// does not tell it to the job itself (SLURM_JOB_END_TIME).  nullopt where it has none, or squeue is
// not there, or does not answer within 5 s.
std::optional<double> EndOfJob(const std::string& number, const launcher::Environment& environment);

// For people: lines of a name and a value.  `now` in seconds since 1970.
std::string JobText(const launcher::JobStatus& status, double now);
// One line of JSON, without its end.
std::string JobJson(const launcher::JobStatus& status, double now);

}  // namespace ddlctl
