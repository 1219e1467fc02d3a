// SPDX-License-Identifier: Apache-2.0
//
// All that ddlrun does differently for different versions of Slurm.  Pure.
//
// For most differences the version need not be known.  Variables are read where they are set
// (slurm_allocation.h: SLURM_GPUS_PER_TASK up to 22.05, SLURM_TRES_PER_TASK in 24.11).  They are
// taken away from srun whether or not it reads them (SLURM_CPUS_PER_TASK until 22.05,
// SRUN_CPUS_PER_TASK since).  Only such options are used that have one meaning from 20.11 on:
// --overlap,
// --gpus-per-node, --gpus, --ntasks-per-node, and --distribution=arbitrary without --nodes.  Which
// kinds of PMI there are, srun is asked.

#pragma once

#include <string>
#include <tuple>
#include <vector>

namespace launcher {

// The numbers of 24.11.5.  The third one only matters for faults that are mended.
struct SlurmVersion {
  int year = 0;
  int month = 0;
  int patch = 0;
  bool operator==(const SlurmVersion&) const = default;
  bool operator<(const SlurmVersion& other) const {
    return std::tie(year, month, patch) < std::tie(other.year, other.month, other.patch);
  }
};

// Stands for a version that is not known, which is taken to behave like the newest.
inline constexpr SlurmVersion kNewestSlurm = {99, 99, 99};

// Reads what `srun --version` prints: "slurm 22.05.8", "slurm-wlm 24.11.5",
// "slurm 23.02.7-bull.1.2", with or without other lines around it.  kNewestSlurm for any other
// text; its patch where there is no third number.
SlurmVersion ParseSlurmVersion(const std::string& text);

// Whether the PMIx servers in slurmstepd may refuse each other while tasks start, so that programs
// wait for ever in their first fence.  That was seen with 22.05.8, and not with 24.11.5
// (doc/decisions/0014, 0015).
bool PmixServersNeedPause(SlurmVersion version);

// The fault that Slurm's PMIx servers are known to have with programs whose PMIx library is `pmix`
// ("5.0.8"), in a step of so many ranks, and the version of Slurm that mends it; "" where none is
// known.
std::string KnownPmixFault(SlurmVersion version, const std::string& pmix, int ranks);

// The kinds of PMI that srun has for the ranks it starts, by which MPI programs find each other.
// Pure.

// The types that `srun --mpi=list` prints, in its order: "pmix", "pmix_v4", "pmi2", "none", ...  It
// prints each type on a line, before Slurm 21.08 with "srun: " in front, and the versions of pmix
// together on another line.
std::vector<std::string> ParseMpiList(const std::string& text);

// The type that --pmi=`pmi` ("pmix", "pmi2" or "none") stands for: the one of this name or, where
// `types` has no plain pmix, the newest version of it.  "" where there is none.
std::string FindMpiType(const std::string& pmi, const std::vector<std::string>& types);

}  // namespace launcher
