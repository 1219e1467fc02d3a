// SPDX-License-Identifier: Apache-2.0

#include "support/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <string_view>

namespace support {

bool CanRedraw(int descriptor, const char* kind) {
  const std::string_view name = kind == nullptr ? "" : kind;
  return !name.empty() && name != "dumb" && isatty(descriptor) == 1;
}

int ColumnsOf(int descriptor) {
  constexpr int kUsual = 80;
  winsize size = {};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace support
