// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/replaced_file.h"

#include <utility>

#include "support/file.h"

namespace trainer {

ReplacedFile::ReplacedFile(std::filesystem::path path, std::function<void(int error)> on_loss)
    : path_(std::move(path)), on_loss_(std::move(on_loss)) {}

void ReplacedFile::Write(std::string_view text) {
  const int error = support::ReplaceFile(path_, text);
  const bool was_losing = std::exchange(is_losing_, error != 0);
  if (is_losing_ && !was_losing) on_loss_(error);
}

}  // namespace trainer
