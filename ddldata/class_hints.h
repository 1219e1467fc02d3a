// SPDX-License-Identifier: Apache-2.0
//
// What people should know of the names of classes, which most likely are not what they meant. Pure.

#pragma once

#include <set>
#include <string>

#include "ddldata/image_sources.h"

namespace trainer {

// The end of a message about the class `name`, which is not among `names`: "; CLASS differs ..." of
// one that differs in capital letters or in the Unicode form of accents only; "" if there is none.
std::string DescribeLikeClass(const std::string& name, const std::set<std::string>& names);

// Class directories that have the names of splits, or that all have directories which others have
// too, as 2019/cat and 2020/cat: a sentence; "" for others.
std::string DescribeNestedDirectories(const ImageListing& listing);

}  // namespace trainer
