// SPDX-License-Identifier: Apache-2.0
//
// MASTER_PORT: where programs that meet over TCP (torch) listen.  ddlrun itself opens no port.

#pragma once

namespace launcher {

// A port from 61000 to 65535, above the range Linux gives out by itself (the reason is
// NVIDIA/enroot#243), starting at 61000 + seed % 4536; the first that is free on this machine now.
int ChooseMasterPort(unsigned long seed);

}  // namespace launcher
