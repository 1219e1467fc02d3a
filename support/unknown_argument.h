// SPDX-License-Identifier: Apache-2.0
//
// The message for an argument that a program with commands does not know.  Pure.

#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace support {

// "unknown argument --step; did you mean --steps?", or where `to`, the command or the program that
// was given it, has nothing like it "unknown argument --step (ddlbench --help lists all)".
std::string DescribeUnknownArgument(const std::string& argument, const CLI::App& to,
                                    const std::string& program);

}  // namespace support
