// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddl-rankfile: one description that makes the parser, --help, the manual page
// and the completion.  Pure.

#pragma once

#include <string>
#include <vector>

#include "support/command_line.h"

namespace rankfile {

enum class Command { kCheck, kConvert, kExpand, kCompress };

// What was asked for.  The text to read is `words`, or in `file`, or on the standard input when
// either of them is "-".
struct Options {
  Command command = Command::kCheck;
  std::vector<std::string> words;  // those of the command line
  std::string file;                // path
  std::string format;              // of check
  std::string from;                // of convert
  std::string to;                  // of convert
  std::string hosts;               // a hostlist: what +n0 counts in
  bool cpus = false;               // CPU numbers, not hosts
};

// Its commands and options; parsing fills `options`, which must outlive it.
support::Program DescribeOptions(Options& options);

// `arguments` (without the program's own name) with "--" in front of the first that is a text
// though it starts with a dash, as DDL_OPTIONS does ("-mode p:4x1x1x1 ").
std::vector<std::string> MarkTexts(std::vector<std::string> arguments);

}  // namespace rankfile
