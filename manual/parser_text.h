// SPDX-License-Identifier: Apache-2.0
//
// Reads out of CLI11's description of a command line what a page says of it.  Pure.

#pragma once

#include "manual/page.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose it
class App;
}  // namespace CLI

namespace manual {

// The options and operands of `app`, without its subcommands.
Command CommandOf(const CLI::App& app);

// One for each subcommand; those below another one come behind it, as "checkpoint list".
std::vector<Command> SubcommandsOf(const CLI::App& app);

}  // namespace manual
