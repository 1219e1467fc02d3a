// SPDX-License-Identifier: Apache-2.0
//
// A plan as text: the files that mpirun reads, the strings that DDL programs read, and what
// --dry-run prints.  Pure functions, safe from any thread.  Formats: rankfile/README.md.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/plan/plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

// Open MPI rankfile, "rank 0=host slot=0:0-9" (socket:cores of the socket, logical numbers), one
// line per rank, each ended by a newline.  A rank that is not bound gets all cores of its node.
// `topologies` are those the plan was made from.  Throws LaunchError(EX_CONFIG) when there are
// none, or cores are too scattered for Open MPI's 63 characters.
std::string RankfileText(const Plan& plan, const std::vector<NodeTopology>& topologies);

// Open MPI hostfile, "host slots=4" per node.
std::string HostfileText(const Plan& plan);

// DDL_HOST_LIST: global ranks by host, "g28n14:0,2,4;g28n15:1,3,5".
std::string DdlHostList(const Plan& plan);

// Longest value of DDL_HOST_LIST; Linux passes no longer variable or argument (MAX_ARG_STRLEN is
// 131072 bytes with the name, '=' and a byte at the end).
inline constexpr std::size_t kMaxHostListBytes = 131072 - sizeof("DDL_HOST_LIST=");

// DDL_OPTIONS: "-mode p:4x2x1x1 " with a trailing blank; GPUs per node x nodes per rack x racks per
// aisle x aisles.  Nodes with unequal numbers of ranks cannot be written so: they are one ring,
// "-mode r:6x1x1x1 ", which is what DDL takes when it is told nothing.
std::string DdlOptions(const Plan& plan);

// --dry-run=text: a table with a line per rank; DDL_HOST_LIST where that fits kMaxHostListBytes;
// warnings last.
std::string PlanAsText(const Plan& plan);

// --dry-run=json: one object with format "ddlrun-plan-1", ranks, nodes, mode, racks, aisles,
// ddl_host_list, ddl_options, warnings; cores and cpus of a rank are CPU lists, "0-7"; two blanks
// of indent, newline at the end.
std::string PlanAsJson(const Plan& plan);

}  // namespace launcher
