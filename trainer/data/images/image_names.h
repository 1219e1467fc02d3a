// SPDX-License-Identifier: Apache-2.0
//
// What the name of a file says of it.  Pure.

#pragma once

#include <string_view>

namespace trainer {

// Behind the last '/'.
std::string_view BaseName(std::string_view path);
// The name of the directory that the file lies in, without the directories above; "" if there is
// none.
std::string_view DirectoryName(std::string_view path);

// Whether the name ends with `ending`, which is in small letters, in any case: .TAR is .tar.
bool HasEnding(std::string_view name, std::string_view ending);
// Whether the name ends as that of an image, whatever its case: .JPEG, .jpg, .png, and other kinds
// that no one here decodes, so that such an image is complained of and not passed over.
bool HasImageEnding(std::string_view name);
// Without such an ending.
std::string_view WithoutImageEnding(std::string_view name);

// Files that file managers and macOS leave behind begin with a dot; a file system has lost+found,
// which only root can read.
bool IsHidden(std::string_view path);

}  // namespace trainer
