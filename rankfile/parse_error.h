// SPDX-License-Identifier: Apache-2.0
//
// The one exception of the parsers: what is wrong, and where.  A value; safe from any thread.

#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace rankfile {

// Lines and columns count from 1; a column is a byte.
struct Position {
  int line = 1;
  int column = 1;

  bool operator==(const Position&) const = default;
};

class ParseError : public std::runtime_error {
 public:
  // what() is "source:line:column: message", one line.  `source` is a file name, or the name of
  // what held the text, such as SLURM_JOB_NODELIST.
  ParseError(std::string_view source, Position where, std::string_view message);

  const std::string& source() const { return source_; }
  Position where() const { return where_; }
  const std::string& message() const { return message_; }

 private:
  std::string source_;
  Position where_;
  std::string message_;
};

}  // namespace rankfile
