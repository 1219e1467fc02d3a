// SPDX-License-Identifier: Apache-2.0
//
// What the launches of a job have cost, by the files that ddlrun keeps (launcher/cost).

#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launcher/cost/launch_record.h"

namespace ddlctl {

// What the run-*.json in `directory` say, in no order.  One that cannot be read is a line to
// `add_error`.  Throws Error(EX_NOINPUT) where there is none, or no such directory.
std::vector<launcher::LaunchRecord> ReadLaunches(
    const std::filesystem::path& directory,
    const std::function<void(const std::string&)>& add_error);

// For people: a line for each launch, and one for the sum of several.
std::string HistoryText(const launcher::LaunchHistory& history);
// One line of JSON, without its end: {"launches": [...], "sum": {...}}.
std::string HistoryJson(const launcher::LaunchHistory& history);

}  // namespace ddlctl
