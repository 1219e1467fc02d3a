// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace support {

// Whether what is written to `descriptor` may have escape sequences, by which a line is drawn
// anew: it is a terminal, and `kind`, the value of TERM or nullptr, is neither none nor dumb.
bool CanRedraw(int descriptor, const char* kind);

}  // namespace support
