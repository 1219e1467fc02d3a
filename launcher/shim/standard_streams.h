// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace launcher {

// Opens /dev/null in place of each standard stream that is closed: a pipe or file that is opened
// later would otherwise get its number, and be taken for it.
void OpenStandardStreams();

}  // namespace launcher
