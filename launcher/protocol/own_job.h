// SPDX-License-Identifier: Apache-2.0
//
// What the shim of a rank reads out of the text that ddlrun made (EncodeRankJob in
// launcher/protocol/rank_job.h has the format): what is common to all ranks, and its own entry.
//
// Everything in launcher/shim does without the C++ standard library: the shim starts once per rank,
// and a C library that starts quickly (musl) is all that it is linked with.

#pragma once

#include <limits.h>

#include "launcher/protocol/rank_report.h"
#include "launcher/topology/fingerprint.h"

namespace launcher {

// Set by ddlrun, read and removed by the shim.  What one variable cannot hold goes on in others,
// DDLRUN_RANK_JOB_2 and so on.
inline constexpr char kRankJobVariable[] = "DDLRUN_RANK_JOB";
inline constexpr int kMaxRankJobParts = 8;

struct OwnJob {
  char spawner[16];  // "srun", "mpirun", "local"
  char pmi[16];      // of srun: "pmix", "pmi2", "none"
  char report_key[kReportKeyBytes + 1];
  bool bind, check, pause;
  char planned_for[3 * sizeof(Fingerprint::text)];
  char run_directory[PATH_MAX];
  char log_directory[PATH_MAX];
  char master_address[256];
  int master_port, restart_count;
  int cpus_per_rank;  // asked for; 0: none were
  int world_size, node_count;
  int rank, node, local_rank;
  int local_world_size;
  char host[256];
  int gpus;             // granted on the node
  int gpu;              // in PCI order; -1: none, or not known
  bool has_other_gpus;  // the ranks of the node have others there than the plan takes them to have
  int numa_os_index;    // -1: memory is not bound
  int cores;
  const char* cpus;  // OS numbers, "0-3,8", in the text up to a blank; "-": not bound
};

// The variable of part `index`, from 0.
struct RankJobPart {
  char name[sizeof(kRankJobVariable) + 8];
};
RankJobPart NameOfPart(int index);

// The text of all parts, "" where there is none or no memory.  `get` is getenv; what it gives must
// remain while the text is in use.  The text of one part is what `get` gave; of more it is
// malloc's, and the shim keeps it until the program takes its place.
const char* JoinRankJob(const char* (*get)(const char* name));

// False when `text` is not what ddlrun writes, or `rank` is not in its plan.  `granted_gpus` is
// SLURM_STEP_GPUS of this node, "" where it is not set: by it all ranks of the node find out alike
// whether its GPUs are those of the plan.
bool ReadOwnJob(const char* text, int rank, const char* granted_gpus, OwnJob* job);

}  // namespace launcher
