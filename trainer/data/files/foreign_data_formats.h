// SPDX-License-Identifier: Apache-2.0
//
// What a directory without data files has in their place: people give the directory above the
// files, the images that they would be made of, or the files of another program.

#pragma once

#include <string>

namespace trainer {

// The end of a sentence that says that `dir` has no data files, which names one thing that it has
// and what to do with it; "; ..." or "" where nothing is known of what it has.  Looks at no more
// than some hundreds of names, two directories down, and never throws for what it cannot read.
std::string PrintFindings(const std::string& dir);

}  // namespace trainer
