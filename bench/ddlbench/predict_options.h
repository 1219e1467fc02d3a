// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "bench/ddlbench/options.h"

namespace bench {

// The command line of ddlbench predict.  Pure.
support::Command PredictCommand(BenchOptions& options);

}  // namespace bench
