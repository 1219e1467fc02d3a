// SPDX-License-Identifier: Apache-2.0
//
// What a run takes its images from, and what it logs about that.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/protocol/rank_environment.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/consistency_item.h"
#include "trainer/core/span_recorder.h"
#include "trainer/core/tensor.h"
#include "trainer/data/data_loader.h"
#include "trainer/data/files/record_cache.h"
#include "trainer/data/files/scan_cache.h"
#include "trainer/options/options.h"
#include "trainer/program/launch_environment.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// Where this user's runs on this node keep what they found by scanning data files; "" for
// --scan_cache=off.  In $XDG_RUNTIME_DIR, $SLURM_TMPDIR, $TMPDIR or /tmp, the first that can be
// written; it need not be there.
std::string ScanCacheDirectory(const Options& options, const EnvironmentLookup& get);

// One of a run's sources, or null where its mode has no use for it.
struct DataLoaders {
  std::unique_ptr<DataLoader> training;
  std::unique_ptr<DataLoader> evaluation;
};
// What sources are given.
struct DataLoaderDeps {
  int data_threads = 1;                                   // of this rank
  std::string scan_cache_dir;                             // of ScanCacheDirectory
  std::function<void(const std::string&)> on_bad_record;  // told of each that is skipped
  AllocateMemory allocate = AllocateOrdinaryMemory;       // of batches; outlives the sources
  SpanRecorder* spans = nullptr;                          // of training; may be null
};
// Throws Error naming the directory or file that cannot be used: EX_DATAERR where it is not there
// or not what it should be, EX_OSERR where it cannot be read, or the directory of --record_cache
// used.
DataLoaders MakeDataLoaders(const Options& options, const launcher::RankInfo& rank,
                            const DataLoaderDeps& deps);

// What ranks must have in common of what they compute on, for CheckRankConsistency.
std::vector<ConsistencyItem> DataConsistencyItems(const DataLoaders& sources);

// What it took to find the records of both sources.
ScanCost CostOfScans(const DataLoaders& sources);

// One line for each source whose records are to be kept on this node, at the end of a run.
void LogRecordCaches(const DataLoaders& sources, const Logger& log);

// Where the labels of the data are far below --classes, less than half of it, what whoever trains
// or evaluates should know, else "".  The labels are those of the data set's labels.txt, or,
// without one, of some records.
std::string DescribeFewLabels(const DataLoaders& sources, const Options& options);

// Collective: rank 0 logs what it took to find the records, and what people should know of the
// data.
void LogSources(const DataLoaders& sources, const Options& options, const DataLoaderDeps& deps,
                Communicator& communicator, const Logger& log);

// "records of 1024 files found in 0.73 s: 1281167 headers, 20.5 MB, read by 1 of 4 ranks".  Headers
// and bytes are those of all ranks, the time is the longest of any.  Collective; the same on every
// rank but for the number of files, which is its own, and where the places of records came from
// when nobody read a header: `index_dir`, or, where that is "", `scan_cache_dir`.
std::string DescribeScans(const ScanCost& own, const std::string& index_dir,
                          const std::string& scan_cache_dir, Communicator& communicator);

// The records that are kept on the node (data/files/record_cache.h).  Pure.

// Before the first step: what is there already, and how much may be.
std::string DescribeRecordCacheAtStart(const RecordCacheUse& use);
// At the end: how many of the records that this rank has read were there.
std::string DescribeRecordCacheAtEnd(const RecordCacheUse& use);

}  // namespace trainer
