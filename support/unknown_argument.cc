// SPDX-License-Identifier: Apache-2.0

#include "support/unknown_argument.h"

#include <vector>

#include "support/spelling.h"

namespace support {

std::string DescribeUnknownArgument(const std::string& argument, const CLI::App& to,
                                    const std::string& program) {
  std::vector<std::string> known;
  for (const CLI::Option* option : to.get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
  }
  for (const CLI::App* command : to.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::string nearest = NearestSpelling(argument.substr(0, argument.find('=')), known);
  return "unknown argument " + argument +
         (nearest.empty() ? " (" + program + " --help lists all)"
                          : "; did you mean " + nearest + "?");
}

}  // namespace support
