// SPDX-License-Identifier: Apache-2.0
//
// What a run says of the records that are kept on its node (data/files/record_cache.h).  Pure.

#pragma once

#include <string>

#include "trainer/data/files/record_cache_options.h"

namespace trainer {

// Before the first step: what is there already, and how much may be.
std::string DescribeRecordCacheAtStart(const RecordCacheUse& use);
// At the end: how many of the records that this rank has read were there.
std::string DescribeRecordCacheAtEnd(const RecordCacheUse& use);

}  // namespace trainer
