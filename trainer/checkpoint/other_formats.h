// SPDX-License-Identifier: Apache-2.0
//
// What lies in the place of a safetensors file: other forms in which weights are kept, and what a
// download leaves when it goes wrong.  Pure.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace trainer {

// A clause about the file `path`, of which `file` is the whole content: what it is, by the bytes
// that such files begin with, and what to do ("a web page (HTML), not the weights: ...").  Of
// PyTorch's own form it has the Python that makes a safetensors file of it.  "" where the bytes
// tell nothing.  REQUIRES: `file` is no whole safetensors file.
std::string DescribeOtherFormat(std::span<const std::byte> file, std::string_view path);

}  // namespace trainer
