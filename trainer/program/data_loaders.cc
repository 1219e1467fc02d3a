// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/data_loaders.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "support/number.h"
#include "support/quoting.h"
#include "trainer/core/error.h"
#include "trainer/data/class_list.h"
#include "trainer/data/data_loader.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/tfrecord_loader.h"

namespace trainer {
namespace {

std::unique_ptr<DataLoader> SyntheticDataLoader(const Options& options,
                                                const launcher::RankInfo& rank,
                                                const DataLoaderDeps& deps, bool training) {
  SyntheticDataLoaderOptions synthetic;
  synthetic.batch_size = options.batch_size;
  synthetic.accumulate = options.accumulate;
  synthetic.short_ranks = options.short_ranks;
  synthetic.image_size = options.image_size;
  synthetic.classes = options.classes;
  synthetic.rank = rank.rank;
  synthetic.world_size = rank.world_size;
  synthetic.seed = options.seed;
  synthetic.training = training;
  synthetic.allocate = deps.allocate;
  // Labels are random, so there is nothing to learn about accuracy: a few batches show that
  // evaluation works.
  constexpr std::int64_t kEvaluationSteps = 10;
  if (!training && options.mode != RunMode::kInferenceBenchmark) {
    const GlobalBatch batch = {options.batch_size, rank.world_size};
    synthetic.samples = kEvaluationSteps * batch.images();
  }
  return MakeSyntheticDataLoader(synthetic);
}

// Below the directory that was given, which others may use as well.
std::string OwnDirectoryIn(const std::string& base) {
  return base + "/ddltraind-" + std::to_string(::geteuid());
}

RecordCacheOptions RecordCacheOf(const Options& options) {
  if (options.record_cache.empty()) return {};
  std::error_code error;
  if (!std::filesystem::is_directory(options.record_cache, error)) {
    throw Error(EX_OSERR, "--record_cache: there is no directory '" + options.record_cache +
                              "' on this node: make it on every node, or give one that is there, "
                              "such as /tmp or /dev/shm");
  }
  constexpr double kGigabyte = 1e9;
  constexpr double kMax = 1e9;  // GB; more is no limit
  return {.dir = OwnDirectoryIn(options.record_cache),
          .max_bytes = static_cast<std::uint64_t>(
              std::ceil(std::min(options.record_cache_gb, kMax) * kGigabyte))};
}

std::unique_ptr<DataLoader> FileSource(const Options& options, const launcher::RankInfo& rank,
                                       const DataLoaderDeps& deps, bool training) {
  TfRecordLoaderOptions records;
  records.data_dir = options.data_dir;
  records.data_idx_dir = options.data_idx_dir;
  records.scan_cache_dir = deps.scan_cache_dir;
  records.record_cache = RecordCacheOf(options);
  records.split = training ? Split::kTrain : Split::kValidation;
  records.training = training;
  records.batch_size = options.batch_size;
  records.accumulate = options.accumulate;
  records.short_ranks = options.short_ranks;
  records.image_size = options.image_size;
  records.rank = rank.rank;
  records.world_size = rank.world_size;
  records.seed = options.seed;
  records.shuffle = options.shuffle;
  records.augment = options.augment;
  records.augmentation = options.augmentation;
  records.classes = options.classes;
  records.bad_records = options.bad_records;
  records.max_bad_records = options.max_bad_records;
  records.on_bad_record = deps.on_bad_record;
  records.threads = deps.data_threads;
  records.prefetch = options.prefetch;
  records.allocate = deps.allocate;
  records.spans = training ? deps.spans : nullptr;
  return MakeTfRecordLoader(records);
}

}  // namespace

std::string ScanCacheDirectory(const Options& options, const EnvironmentLookup& get) {
  if (options.scan_cache == "off") return "";
  std::string base = "/tmp";
  std::error_code error;
  for (const char* name : {"XDG_RUNTIME_DIR", "SLURM_TMPDIR", "TMPDIR"}) {
    const std::string directory = get(name).value_or("");
    const bool is_usable = directory.starts_with('/') &&
                           std::filesystem::is_directory(directory, error) &&
                           ::access(directory.c_str(), W_OK | X_OK) == 0;
    if (!is_usable) continue;
    base = directory;
    break;
  }
  return OwnDirectoryIn(base);
}

DataLoaders MakeDataLoaders(const Options& options, const launcher::RankInfo& rank,
                            const DataLoaderDeps& deps) {
  const auto make = [&](bool training) {
    return options.data_dir.empty() ? SyntheticDataLoader(options, rank, deps, training)
                                    : FileSource(options, rank, deps, training);
  };
  DataLoaders sources;
  if (IsTraining(options.mode)) sources.training = make(true);
  if (IsEvaluating(options.mode)) sources.evaluation = make(false);
  return sources;
}

std::vector<ConsistencyItem> DataConsistencyItems(const DataLoaders& sources) {
  std::vector<ConsistencyItem> items;
  for (const DataLoader* source : {sources.training.get(), sources.evaluation.get()}) {
    if (source == nullptr) continue;
    const std::vector<ConsistencyItem> more = source->items();
    items.insert(items.end(), more.begin(), more.end());
  }
  return items;
}

ScanCost CostOfScans(const DataLoaders& sources) {
  ScanCost cost;
  for (const DataLoader* source : {sources.training.get(), sources.evaluation.get()}) {
    if (source != nullptr) cost += source->scan_cost();
  }
  return cost;
}

std::string DescribeFewLabels(const DataLoaders& sources, const Options& options) {
  const DataLoader* source = sources.training ? sources.training.get() : sources.evaluation.get();
  if (source == nullptr || options.data_dir.empty()) return "";
  std::optional<std::int64_t> highest;
  std::string origin = "by " + std::string(kLabelsName) + " there";
  try {
    const std::vector<ImageClass> classes = ReadLabels(options.data_dir);
    if (!classes.empty()) highest = std::ssize(classes);
  } catch (const Error&) {
    // A file of that name that is somebody else's.
  }
  const bool has_list = highest.has_value();
  if (!has_list) {
    origin = "in some records of all its files";
    highest = source->SampleHighestLabel();
  }
  if (!highest || *highest < 1) return "";
  const bool is_one_class = has_list && *highest == 1;  // a few records of label 1 prove nothing
  if (*highest >= options.classes - *highest && !is_one_class) return "";
  const std::string advice =
      *highest == 1 ? "there is nothing to learn with one class; " +
                          support::QuoteCommand({"ddldata", "stats", options.data_dir}) +
                          " shows what the files have"
                    : "--classes=" + std::to_string(*highest) + " trains for these";
  return "the labels in " + options.data_dir + " end at " + std::to_string(*highest) + " (" +
         origin + "), but --classes is " + std::to_string(options.classes) +
         ": the other classes are never seen; " + advice;
}

void LogSources(const DataLoaders& sources, const Options& options, const DataLoaderDeps& deps,
                Communicator& communicator, const Logger& log) {
  const bool root = communicator.rank() == 0;
  const bool has_sources = sources.training || sources.evaluation;
  const bool reads_files = has_sources && !options.data_dir.empty();
  if (root && has_sources && options.data_dir.empty()) {
    const bool is_benchmark =
        options.mode == RunMode::kTrainingBenchmark || options.mode == RunMode::kInferenceBenchmark;
    if (is_benchmark) {
      log->info("synthetic data (no --data_dir)");
    } else {
      log->warn("training on synthetic data (no --data_dir): accuracy is meaningless");
    }
  }
  if (reads_files) {
    const ScanCost cost = CostOfScans(sources);
    const std::string scans =
        DescribeScans(cost, options.data_idx_dir, deps.scan_cache_dir, communicator);
    if (root) log->info("{}", scans);
    if (root && !cost.note.empty()) log->info("what the scan found is not kept: {}", cost.note);
    if (root && !ReadShardManifest(options.data_dir)) {
      log->info("{}", DescribeMissingManifest(options.data_dir));
    }
    const std::string few_labels = root ? DescribeFewLabels(sources, options) : "";
    if (!few_labels.empty()) log->warn("{}", few_labels);
  }
  for (const DataLoader* source : {sources.training.get(), sources.evaluation.get()}) {
    if (!root || source == nullptr) continue;
    if (!source->note().empty()) log->warn("{}", source->note());
    if (const auto kept = source->record_cache()) {
      log->info("{}", DescribeRecordCacheAtStart(*kept));
    }
  }
}

void LogRecordCaches(const DataLoaders& sources, const Logger& log) {
  for (const DataLoader* source : {sources.training.get(), sources.evaluation.get()}) {
    if (source == nullptr) continue;
    if (const auto kept = source->record_cache()) log->info("{}", DescribeRecordCacheAtEnd(*kept));
  }
}

std::string DescribeScans(const ScanCost& own, const std::string& index_dir,
                          const std::string& scan_cache_dir, Communicator& communicator) {
  std::array<double, 3> sums = {static_cast<double>(own.headers), static_cast<double>(own.bytes),
                                own.scanned > 0 ? 1.0 : 0.0};
  std::array<double, 1> longest = {own.seconds};
  communicator.AllReduceSum(sums);
  communicator.AllReduceMax(longest);
  const auto [headers, bytes, ranks] = sums;
  const std::string found = fmt::format(
      "records of {} found in {:.2f} s: ", support::Counted(own.files, "file"), longest[0]);
  if (ranks > 0) {
    return found + fmt::format("{:.0f} headers, {:.1f} MB, read by {:.0f} of {}", headers,
                               bytes * 1e-6, ranks, support::Counted(communicator.size(), "rank"));
  }
  return found + (index_dir.empty() ? "an earlier scan is in " + scan_cache_dir
                                    : "index files are in " + index_dir);
}

namespace {

double Gigabytes(std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

std::string DescribeNote(const RecordCacheUse& use) {
  return use.note.empty() ? "" : "; no more is kept: " + use.note;
}

}  // namespace

std::string DescribeRecordCacheAtStart(const RecordCacheUse& use) {
  if (use.path.empty()) return "records are not kept on this node: " + use.note;
  return fmt::format("records are kept in {}, up to {:.3f} GB: {:.3f} of {:.3f} GB are there",
                     use.path, Gigabytes(use.max_bytes), Gigabytes(use.bytes),
                     Gigabytes(use.set_bytes));
}

std::string DescribeRecordCacheAtEnd(const RecordCacheUse& use) {
  if (use.path.empty()) return "records were not kept on this node: " + use.note;
  return fmt::format(
      "{} of {} records that rank 0 has read were in {}, which has {:.3f} of {:.3f} "
      "GB now{}",
      use.hits, use.hits + use.misses, use.path, Gigabytes(use.bytes), Gigabytes(use.set_bytes),
      DescribeNote(use));
}

}  // namespace trainer
