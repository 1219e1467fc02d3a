// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "launcher/error.h"
#include "launcher/rank/rank_job.h"
#include "launcher/shim/own_job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static launcher::OwnJob own;
  const bool is_read = launcher::ReadOwnJob(text.c_str(), 1, "0-1,3", &own);
  if (is_read && (own.node < 0 || own.node >= own.node_count)) std::abort();
  try {
    launcher::DecodeRankJob(text);
  } catch (const launcher::LaunchError&) {
  }
  return 0;
}
