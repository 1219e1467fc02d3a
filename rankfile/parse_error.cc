// SPDX-License-Identifier: Apache-2.0

#include "rankfile/parse_error.h"

namespace rankfile {

ParseError::ParseError(std::string_view source, Position where, std::string_view message)
    : std::runtime_error(std::string(source) + ":" + std::to_string(where.line) + ":" +
                         std::to_string(where.column) + ": " + std::string(message)),
      source_(source),
      where_(where),
      message_(message) {}

}  // namespace rankfile
