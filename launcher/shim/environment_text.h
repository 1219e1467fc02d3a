// SPDX-License-Identifier: Apache-2.0
//
// Values of variables as C strings.

#pragma once

#include <stdlib.h>
#include <string.h>

namespace launcher {

// The value of a variable of this process; "" where it is not set.
inline const char* Get(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

inline bool Is(const char* a, const char* b) { return strcmp(a, b) == 0; }

}  // namespace launcher
