// SPDX-License-Identifier: Apache-2.0
//
// The log for people: one line per event,
//   2026-01-02T03:04:05.678+01:00 [rank 3] warning: message
// Thread-safe.  main hands in the stream (stderr), or the line that is redrawn there, and keeps it
// alive.

#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "trainer/telemetry/text/redrawn_line.h"

namespace trainer {

using Logger = std::shared_ptr<spdlog::logger>;

// `level`: "debug", "info", "warning", "error" or "off"; throws Error(EX_USAGE) that lists them for
// any other.  Every line is flushed: a rank that dies has said all it knew.
Logger MakeLogger(std::ostream& out, int rank, std::string_view level);
// Each on a line of its own behind `line`.
Logger MakeLogger(RedrawnLine& line, int rank, std::string_view level);

}  // namespace trainer
