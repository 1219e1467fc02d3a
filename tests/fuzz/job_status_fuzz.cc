// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "launcher/protocol/job_status.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto status =
      launcher::ParseJobStatus(std::string(reinterpret_cast<const char*>(data), size));
  if (!status) return 0;
  // What was read can be written, and then reads the same.
  const std::string text = launcher::FormatJobStatus(*status);
  const auto again = launcher::ParseJobStatus(text);
  if (!again || launcher::FormatJobStatus(*again) != text) std::abort();
  return 0;
}
