// SPDX-License-Identifier: Apache-2.0
//
// Where tests find fixtures and programs. One source knows, so that in every clone all others
// compile alike: ccache then has them.

#pragma once

#include <string>

namespace tests {

std::string SourceDirectory();  // of the repository, absolute
std::string BuildDirectory();

}  // namespace tests
