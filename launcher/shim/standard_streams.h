// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace launcher {

// Opens those of descriptors 0, 1 and 2 that are closed, onto nothing: a pipe or file that is
// opened later would be taken for them.
void OpenStandardStreams();

}  // namespace launcher
