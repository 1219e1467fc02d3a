// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "trainer/options/options.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {

// What a run was told, by option, for machines to read; options without a value are left out.
LogFields LoggedParameters(const Options& options);

}  // namespace trainer
