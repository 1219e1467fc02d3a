// SPDX-License-Identifier: Apache-2.0
//
// The kinds of PMI that srun has for the ranks it starts, by which MPI programs find each other.
// Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// The types that `srun --mpi=list` prints, in its order: "pmix", "pmix_v4", "pmi2", "none", ...  It
// prints each type on a line, before Slurm 21.08 with "srun: " in front, and the versions of pmix
// together on another line.
std::vector<std::string> ParseMpiList(const std::string& text);

// The type that --pmi=`pmi` ("pmix", "pmi2" or "none") stands for: the one of this name or, where
// `types` has no plain pmix, the newest version of it.  "" where there is none.
std::string FindMpiType(const std::string& pmi, const std::vector<std::string>& types);

}  // namespace launcher
