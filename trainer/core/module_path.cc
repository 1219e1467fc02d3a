// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/module_path.h"

#include <filesystem>

namespace trainer {

std::string ModulePath(const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path().parent_path() / "lib/ddlrun" / name).string();
}

}  // namespace trainer
