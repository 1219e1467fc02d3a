// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <string>

#include "launcher/base/error.h"
#include "launcher/cli/site_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    launcher::ParseSiteConfig(std::string(reinterpret_cast<const char*>(data), size), "site.yaml");
  } catch (const launcher::LaunchError&) {
  }
  return 0;
}
