// SPDX-License-Identifier: Apache-2.0
//
// How the shim of a rank reads the text that ddlrun made for all ranks (EncodeRankJob in rank_job.h
// has the format): it takes what is common to all ranks, and what is about its own rank.
//
// This file and all of launcher/shim do without the C++ library: the shim is started once for each
// rank, and is linked with nothing but a C library that starts quickly (musl).

#pragma once

#include <limits.h>

#include "launcher/protocol/rank_event.h"
#include "launcher/topology/fingerprint.h"

namespace launcher {

// The variable that ddlrun sets, and the shim reads and removes.  A text that is too long for one
// variable goes on in DDLRUN_RANK_JOB_2 and so on.
inline constexpr char kRankJobVariable[] = "DDLRUN_RANK_JOB";
inline constexpr int kMaxRankJobChunks = 8;

// The first word of the text: "ddlrun=" and the version of the ddlrun that wrote it.  A shim reads
// only what its own version wrote: an upgrade may replace it between two starts of one job.
const char* RankJobVersion();

// What comes after that word; nullptr where it is not that of this version.
const char* SkipRankJobVersion(const char* text);

struct LocalRankJob {
  char launcher[16];  // its name in launchers.h
  char pmi[16];       // of srun: "pmix", "pmi2", "none"
  char event_key[kEventKeyBytes + 1];
  bool bind, check, pause;
  char planned_for[3 * sizeof(Fingerprint::text)];
  char run_directory[PATH_MAX];
  char log_directory[PATH_MAX];
  char directory[PATH_MAX];
  char master_address[256];
  int master_port, restart_count, grace_ms;
  bool frames, is_shown;  // how the output is passed on, and whether it is
  int wrap_count;
  const char* wraps;  // as they are encoded (rank_job.h)
  int cpus_per_rank;  // that were asked for; 0: none
  int world_size, node_count;
  int rank, node, local_rank;
  int local_world_size;
  char host[256];
  int gpus;             // how many the job was granted on the node
  int used_gpus;        // how many the ranks of the node have in the plan, each counted once
  int gpu;              // that of the rank, in PCI order; -1: none, or it is not known which
  bool has_other_gpus;  // the job was granted other GPUs of this node than the plan assumes
  int numa_os_index;    // -1: memory is not bound
  int cores;
  const char* cpus;  // OS numbers, "0-3,8", up to a blank or the end of the text; "-": not bound
};

// `program`, ended by a null pointer, under the wraps of the job for its rank: `program` itself
// where there are none, else made with malloc, as are the words in front of it.  nullptr where
// there is no memory.
char** WithWraps(const LocalRankJob& job, char** program);

// The name of the variable with part `index` of the text, counted from 0.
struct RankJobChunk {
  char name[sizeof(kRankJobVariable) + 8];
};
RankJobChunk NameOfChunk(int index);

// The text of all parts; "" where there is none, or no memory for it.  `get` is getenv, and its
// values must stay as they are while the text is in use: a text of one part is the value itself.  A
// longer one is made with malloc and never freed, since the shim needs it until its end.
const char* JoinRankJob(const char* (*get)(const char* name));

// Fills in `job` for `rank`.  False when `text` is not what ddlrun writes, or `rank` is not in its
// plan.  `granted_gpus` is SLURM_STEP_GPUS of this node, "" where it is not set; by it every rank
// of the node comes to the same has_other_gpus.
bool ReadLocalRankJob(const char* text, int rank, const char* granted_gpus, LocalRankJob* job);

}  // namespace launcher
