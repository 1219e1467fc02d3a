// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/more_colons.h"

#include "launcher/protocol/launchers.h"

namespace launcher {

std::vector<std::string> WithMoreColons(std::vector<std::string> program) {
  for (std::string& word : program) {
    if (IsOfColons(word.c_str())) word += ':';
  }
  return program;
}

}  // namespace launcher
