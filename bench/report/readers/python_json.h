// SPDX-License-Identifier: Apache-2.0
//
// JSON as Python's json.dumps writes it: the words NaN, Infinity and -Infinity, which are no JSON,
// become null.  Pure.

#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace bench {

// Members in the order of the text.  is_discarded() where it is no JSON, or no UTF-8.
nlohmann::ordered_json ParsePythonJson(std::string_view text);

}  // namespace bench
