// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddlbench predict.  Pure.

#pragma once

#include "bench/ddlbench/options.h"

namespace bench {

void AddPredictCommand(CLI::App& app, BenchOptions& options);

}  // namespace bench
