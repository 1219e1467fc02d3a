// SPDX-License-Identifier: Apache-2.0

#include "bench/base/site_machine.h"

#include "launcher/base/error.h"
#include "launcher/cli/site_config.h"
#include "trainer/core/error.h"

namespace bench {

scaling::Machine MachineOfSite(const std::string& site) {
  try {
    return launcher::LoadSite(site, {}).machine;
  } catch (const launcher::LaunchError& error) {
    throw trainer::Error(error.exit_code(), error.what());
  }
}

}  // namespace bench
