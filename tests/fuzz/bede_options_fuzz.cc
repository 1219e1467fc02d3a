// SPDX-License-Identifier: Apache-2.0
//
// The command line of bede-mpirun, an argument per line: read or refused; no word of mpirun's is
// lost.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/bede/bede_options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> arguments;
  for (std::string line; std::getline(text, line);) arguments.push_back(line);
  try {
    const launcher::BedeOptions options = launcher::ParseBedeOptions(arguments);
    if (options.help || options.version) return 0;
    if (options.mpirun_words.size() + 3 < arguments.size()) std::abort();
    const std::string par = launcher::FormatBedePar(options.par);
    if (launcher::FormatBedePar(launcher::ParseBedePar(par)) != par) std::abort();
  } catch (const launcher::LaunchError&) {
    return 0;
  }
  return 0;
}
