// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <string>

#include "launcher/error.h"
#include "launcher/rank/rank_job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    launcher::DecodeRankJob(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const launcher::LaunchError&) {
  }
  return 0;
}
