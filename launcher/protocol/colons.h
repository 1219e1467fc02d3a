// SPDX-License-Identifier: Apache-2.0
//
// mpirun and srun take the word ":" for the end of one program and the beginning of another.  So
// words of colons alone have one colon more on their way from ddlrun to the shim.  It has no C++
// library: the shim uses it.

#pragma once

namespace launcher {

// Whether `word` is one colon or more, and nothing else.
inline bool IsOfColons(const char* word) {
  if (*word == '\0') return false;
  while (*word == ':') ++word;
  return *word == '\0';
}

}  // namespace launcher
