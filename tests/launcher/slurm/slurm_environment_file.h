// SPDX-License-Identifier: Apache-2.0
//
// Reads the real Slurm environments of tests/fixtures/slurm-env.

#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "launcher/slurm/slurm_variables.h"
#include "tests/support/directories.h"

namespace launcher {

struct EnvironmentSection {
  std::string title;  // "batch script", "srun task 0 (srun, no --mpi)"
  Environment variables;
};

// The sections of a file in order; that of `scontrol show job` is left out. A section has what
// differs from the one before it.
inline std::vector<EnvironmentSection> ReadEnvironmentFile(const std::string& name) {
  const std::string path = tests::SourceDirectory() + "/tests/fixtures/slurm-env/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<EnvironmentSection> sections;
  bool is_environment = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) {
      is_environment = line.rfind("## scontrol", 0) != 0;
      if (!is_environment) continue;
      const Environment before = sections.empty() ? Environment() : sections.back().variables;
      sections.push_back({line.substr(3), before});
    } else if (is_environment) {
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        const std::size_t equals = word.find('=');
        if (word.front() == '-') {
          sections.back().variables.erase(word.substr(1));
        } else {
          sections.back().variables[word.substr(0, equals)] = word.substr(equals + 1);
        }
      }
    }
  }
  return sections;
}

// The environment that ddlrun meets: the batch script's or salloc's, which is the first section.
inline Environment ReadBatchEnvironment(const std::string& name) {
  return ReadEnvironmentFile(name).front().variables;
}

}  // namespace launcher
