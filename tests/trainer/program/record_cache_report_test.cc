// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/record_cache_report.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

const RecordCacheUse kUse = {
    "/ssd/d/records-1", 144'300'000'000, 12'345'678'900, 200'000'000'000, 30, 70, ""};

TEST(DescribeRecordCache, SaysWhatIsThere) {
  EXPECT_EQ(DescribeRecordCacheAtStart(kUse),
            "records are kept in /ssd/d/records-1, up to 200.000 GB: 12.346 of 144.300 GB are "
            "there");
  EXPECT_EQ(DescribeRecordCacheAtEnd(kUse),
            "30 of 100 records that rank 0 has read were in /ssd/d/records-1, which has 12.346 of "
            "144.300 GB now");
}

TEST(DescribeRecordCache, SaysWhyNoMoreIsKept) {
  RecordCacheUse use = kUse;
  use.note = "it is full";
  EXPECT_TRUE(DescribeRecordCacheAtEnd(use).ends_with(" GB now; no more is kept: it is full"));
  use = {};
  use.note = "/data/train-1 was changed just now";
  EXPECT_EQ(DescribeRecordCacheAtStart(use),
            "records are not kept on this node: /data/train-1 was changed just now");
  EXPECT_EQ(DescribeRecordCacheAtEnd(use),
            "records were not kept on this node: /data/train-1 was changed just now");
}

}  // namespace
}  // namespace trainer
