// SPDX-License-Identifier: Apache-2.0
//
// Values as Python prints them, for log formats whose readers were written against Python programs.
// Pure functions.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace trainer {

using LogValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
using LogFields = std::vector<std::pair<std::string, LogValue>>;

// repr(float): the shortest digits that read back the same; "1e-05", "0.0", "365.1", "nan".
std::string PythonFloat(double value);
// str(value): True, 20, 365.1, text as it is.
std::string PythonString(const LogValue& value);
// json.dumps(value): true, 20, 365.1, NaN, "text" with ASCII escapes.
std::string PythonJson(const LogValue& value);
// json.dumps(dict): {"a": 1, "b": "x"}
std::string PythonJson(const LogFields& fields);

}  // namespace trainer
