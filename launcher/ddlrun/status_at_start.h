// SPDX-License-Identifier: Apache-2.0
//
// What the status of a job says from the start of its ranks on.

#pragma once

#include "launcher/ddlrun/one_run.h"
#include "launcher/protocol/job_status.h"

namespace launcher {

// All but the states of the ranks, which have yet to start.  The clock says when.
JobStatus StatusAtStart(const Invocation& invocation, const PlannedJob& planned,
                        const Launch& launch);

}  // namespace launcher
