// SPDX-License-Identifier: Apache-2.0
//
// What scontrol prints is read without a crash, or refused.

#include <cstddef>
#include <cstdint>
#include <string>

#include "launcher/base/error.h"
#include "launcher/slurm/job_detail.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  launcher::StateOfEndedJob(text, "1");
  try {
    launcher::ParseJobDetail(text, "1");
  } catch (const launcher::LaunchError&) {
  }
  return 0;
}
