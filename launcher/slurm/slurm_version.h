// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun does otherwise from one version of Slurm to another: all of it is decided here. Pure.
//
// Most differences need no version: variables are read where they are there (launcher/allocation:
// SLURM_GPUS_PER_TASK up to 22.05, SLURM_TRES_PER_TASK in 24.11), taken away from srun whether or
// not it reads them (SLURM_CPUS_PER_TASK until 22.05, SRUN_CPUS_PER_TASK since), and options are
// only those that mean the same to all from 20.11 on: --overlap, --gpus-per-node, --gpus,
// --ntasks-per-node, and --distribution=arbitrary without --nodes.  Which PMI srun has is asked
// (pmi_types.h).

#pragma once

#include <string>

namespace launcher {

// Two numbers, as in 24.11; the third never changes what a program sees.
struct SlurmVersion {
  int year = 0;
  int month = 0;
  bool operator==(const SlurmVersion&) const = default;
};

// Of a Slurm whose version is not known: what is true of the newest is taken to be true of it.
inline constexpr SlurmVersion kNewestSlurm = {99, 99};

// From `srun --version`: "slurm 22.05.8", "slurm-wlm 24.11.5", "slurm 23.02.7-bull.1.2", with or
// without other lines around it.  Any other text: kNewestSlurm.
SlurmVersion ParseSlurmVersion(const std::string& text);

// Whether slurmstepd's PMIx servers may refuse each other while tasks start, so that programs wait
// for ever in their first fence.  Seen with 22.05.8, not with 24.11.5 (doc/decisions/0014, 0015).
bool PmixServersNeedPause(SlurmVersion version);

}  // namespace launcher
