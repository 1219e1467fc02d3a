// SPDX-License-Identifier: Apache-2.0
//
// ddl-manual: writes manual pages and completions while the project is built; not installed.
// usage: ddl-manual DIR YYYY-MM-DD      makes DIR/man1/NAME.1, DIR/completions/NAME,
// DIR/options/NAME.md

#include <sysexits.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "manual/bash_completion.h"
#include "manual/pages.h"
#include "manual/roff.h"

namespace {

bool WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::error_code ignored;  // the file then cannot be written
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) std::fprintf(stderr, "ddl-manual: cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ddl-manual DIR YYYY-MM-DD\n");
    return EX_USAGE;
  }
  const std::filesystem::path directory = argv[1];
  for (const manual::Page& page : manual::AllPages()) {
    if (!WriteFile(directory / "options" / (page.names.front() + ".md"),
                   manual::FormatMarkdown(page))) {
      return EX_CANTCREAT;
    }
    const std::string completion = manual::FormatBashCompletion(page);
    const std::string roff = manual::FormatRoff(page, argv[2], "ddlrun " DDLRUN_VERSION);
    for (const std::string& name : page.names) {
      if (!WriteFile(directory / "man1" / (name + ".1"), roff) ||
          !WriteFile(directory / "completions" / name, completion)) {
        return EX_CANTCREAT;
      }
    }
  }
  return EX_OK;
}
