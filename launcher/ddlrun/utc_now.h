// SPDX-License-Identifier: Apache-2.0
//
// The time as people read it in what ddlrun writes.

#pragma once

#include <array>
#include <ctime>
#include <string>

namespace launcher {

// Now: "2026-11-27 09:30:00 UTC".
inline std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::array<char, 64> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

}  // namespace launcher
