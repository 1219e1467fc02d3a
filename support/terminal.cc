// SPDX-License-Identifier: Apache-2.0

#include "support/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace support {

bool CanRedraw(int descriptor) {
  const char* terminal = std::getenv("TERM");
  const std::string_view name = terminal == nullptr ? "" : terminal;
  return !name.empty() && name != "dumb" && isatty(descriptor) == 1;
}

}  // namespace support
