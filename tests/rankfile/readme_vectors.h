// SPDX-License-Identifier: Apache-2.0
//
// Reads the test vectors of rankfile/README.md, so that the page and the code cannot part.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rankfile/scanner.h"

namespace rankfile {

struct ReadmeVector {
  int line = 0;  // of the page
  std::string input;
  bool is_rejection = false;
  std::string output;  // what is written, or a part of the message
  Position where;      // of a refusal
};

// The vectors of all blocks fenced as ```vectors NAME.  Throws std::runtime_error, naming the line,
// when the page cannot be read or a vector is malformed, and when there is none of this name.
std::vector<ReadmeVector> ReadReadmeVectors(const std::string& name);

// Runs `convert` on the input of each vector of this name and compares the result, or the refusal.
void CheckReadmeVectors(const std::string& name,
                        const std::function<std::string(const std::string&)>& convert);

}  // namespace rankfile
