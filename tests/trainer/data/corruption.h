// SPDX-License-Identifier: Apache-2.0
//
// Random damage to a data set on disk: to the bytes, the records, the files.

#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/core/philox.h"

namespace trainer {

// A data set of both splits with index files and a manifest.
struct DataSetDirectories {
  std::filesystem::path data;
  std::filesystem::path index;
};

struct Corruption {
  std::string name;  // "shard: a record cut out"
  std::function<void(const DataSetDirectories& directories, Random& random)> apply;
};

// All kinds there are.  Now and then one changes nothing (two equal lines exchanged).
std::vector<Corruption> AllCorruptions();

}  // namespace trainer
