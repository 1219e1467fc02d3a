// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace support {

// Whether what is written to `descriptor` may have escape sequences, by which a line is drawn
// anew: it is a terminal, and TERM says neither that it is a dumb one nor nothing.
bool CanRedraw(int descriptor);

}  // namespace support
