// SPDX-License-Identifier: Apache-2.0
//
// Text for whoever started the program.

#pragma once

#include <cstdio>
#include <string>

namespace launcher {

inline void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }
inline void Say(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace launcher
