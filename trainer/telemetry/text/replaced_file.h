// SPDX-License-Identifier: Apache-2.0
//
// A small file that is written anew from time to time, as support::ReplaceFile does: who reads it
// finds the text before or the text now, and never a part of one.  Not synced: after a crash of the
// machine it may be an old one.
//
// Not thread-safe.

#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace trainer {

class ReplacedFile {
 public:
  // `on_loss` is told errno when a text cannot be written and the one before could.
  ReplacedFile(std::filesystem::path path, std::function<void(int error)> on_loss);

  const std::filesystem::path& path() const { return path_; }

  // Where it fails, what was there before still is.
  void Write(std::string_view text);

 private:
  const std::filesystem::path path_;
  const std::function<void(int)> on_loss_;
  bool is_losing_ = false;  // the last text was lost
};

}  // namespace trainer
