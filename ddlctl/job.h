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

// Whether `name` is the number of a job, "12" or "12_3", and no folder: one that has such a name is
// written ./12.
bool IsJobNumber(const std::string& name);

// The folders in which a ddlrun with this environment makes its run directory, if --run-dir does
// not say another.
std::vector<std::filesystem::path> RunDirectoryBases(const launcher::Environment& environment);

// The status in the run directory `folder` of ddlrun; nullopt where there is none.  Throws
// Error(EX_DATAERR) for one that cannot be read.
std::optional<launcher::JobStatus> ReadJobStatus(const std::filesystem::path& folder);

// That of the job `number` on this node, by the run directories of this user in `bases`; the newest
// of several.
std::optional<launcher::JobStatus> FindJobStatus(const std::string& number,
                                                 const std::vector<std::filesystem::path>& bases);

// The node that runs ddlrun of a batch job, as squeue says; "" where that is not known.
std::string NodeOfJob(const std::string& number, const launcher::Environment& environment);

// For people: lines of a name and a value.  `now` in seconds since 1970.
std::string JobText(const launcher::JobStatus& status, double now);
// One line of JSON, without its end.
std::string JobJson(const launcher::JobStatus& status, double now);

}  // namespace ddlctl
