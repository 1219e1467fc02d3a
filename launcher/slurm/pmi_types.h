// SPDX-License-Identifier: Apache-2.0
//
// The PMI that srun gives to the ranks it starts: by it MPI programs find each other.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// The types that `srun --mpi=list` names, in its order: "pmix", "pmix_v4", "pmi2", "none", ...  It
// has them on a line each after a heading (since 21.08) or after "srun: " (before), and versions of
// pmix on a line of their own.
std::vector<std::string> ParseMpiList(const std::string& text);

// The type of `types` that --pmi=`pmi` ("pmix", "pmi2" or "none") stands for: itself, or where
// there is no plain pmix the newest version of it.  "" where there is none.
std::string FindMpiType(const std::string& pmi, const std::vector<std::string>& types);

}  // namespace launcher
