// SPDX-License-Identifier: Apache-2.0
//
// A plan as text: the files that mpirun reads, the strings that DDL programs read, and what
// --dry-run prints.  Pure functions, safe from any thread.  Formats: rankfile/README.md.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/placement/launch_plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

// A rankfile of Open MPI with a line per rank, "rank 0=host slot=0:0-9": the logical numbers of a
// socket and of cores within it.  A rank that is not bound gets all cores of its node. `topologies`
// are those that the plan was made from; where there are none, as in the shell of salloc, each rank
// gets core 0, and mpirun is to take no more from the file than hosts (--bind-to none).  Throws
// LaunchError(EX_CONFIG) when the cores of a rank are so scattered that they do not fit the 63
// characters that Open MPI reads.
std::string RankfileText(const LaunchPlan& plan, const std::vector<NodeTopology>& topologies);

// A hostfile of Open MPI with a line per node, "host slots=4".
std::string HostfileText(const LaunchPlan& plan);

// DDL_HOST_LIST: global ranks by host, "g28n14:0,2,4;g28n15:1,3,5".
std::string DdlHostList(const LaunchPlan& plan);

// The longest value of DDL_HOST_LIST.  Linux passes no variable that has more than 131072 bytes
// with its name, '=' and the byte at its end (MAX_ARG_STRLEN).
inline constexpr std::size_t kMaxHostListBytes = 131072 - sizeof("DDL_HOST_LIST=");

// DDL_OPTIONS, "-mode p:4x2x1x1 " with a blank at the end: GPUs per node x nodes per rack x racks
// per aisle x aisles.  Nodes with unequal numbers of ranks cannot be written in this way.  They
// become one ring, "-mode r:6x1x1x1 ", as DDL itself assumes when it is told nothing.
std::string DdlOptions(const LaunchPlan& plan);

// What --dry-run=text prints: a table with a line per rank, DDL_HOST_LIST where it is not longer
// than kMaxHostListBytes, DDL_OPTIONS, and the warnings.
std::string PlanAsText(const LaunchPlan& plan);

// What --dry-run=json prints: one object with format ("ddlrun-plan-1"), ranks, nodes, mode, racks,
// aisles, ddl_host_list, ddl_options and warnings.  The cores and CPUs of a rank are lists such as
// "0-7".  It is indented by two blanks and ends with a newline.
std::string PlanAsJson(const LaunchPlan& plan);

// Makes a plan of the user's own rankfile.  It says which rank runs where; its cores stay empty,
// since mpirun binds the ranks by the file itself.  Pure.

// `text` is that of the file `name`.  Throws LaunchError(EX_DATAERR) with line and column where it
// is no rankfile, and for one without a rank.
LaunchPlan PlanFromRankfile(const std::string& text, const std::string& name);

// The text of the same file with hosts named as `job` names them, since srun, which mpirun starts
// inside Slurm, knows no other names; "" where the file has these names already.  Throws as above,
// and LaunchError(EX_CONFIG) for a host that is not in the job.
std::string WithHostsOfJob(const std::string& text, const std::string& name, const Allocation& job);

}  // namespace launcher
