// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace support {

// Whether what is written to `descriptor` may have escape sequences, by which a line is drawn
// anew: it is a terminal, and `kind`, the value of TERM or nullptr, is neither none nor dumb.
bool CanRedraw(int descriptor, const char* kind);

// How many letters a line of it has now; 80 where it does not say.  It may change at any time.
int ColumnsOf(int descriptor);

}  // namespace support
