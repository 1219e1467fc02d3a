// SPDX-License-Identifier: Apache-2.0
//
// What scontrol prints about a job is read without a crash, or passed over.

#include <cstddef>
#include <cstdint>
#include <string>

#include "launcher/slurm/slurm_job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  launcher::ParseSlurmJob(std::string(reinterpret_cast<const char*>(data), size), "1");
  return 0;
}
