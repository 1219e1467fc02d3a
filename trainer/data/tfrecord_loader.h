// SPDX-License-Identifier: Apache-2.0
//
// Batches out of TFRecord files of JPEG images with labels and bounding boxes (ImageNet as
// TensorFlow's scripts write it: files `train-*` and `validation-*`).  Records are decoded by
// threads of the source's own, some batches ahead, and read by other threads ahead of these
// (read_ahead.h); what a batch holds does not depend on any of them.
//
// Sample number k of a training run is place k % samples of epoch k / samples in the order of
// shard_sampler.h; nothing is dropped at the end of an epoch.  Its crop and mirroring are drawn
// from Random(seed, kAugment, k): augment.h has the rules.  Evaluation takes the files in order,
// each image once.
//
// Threads: all calls from one thread.  The threads inherit the CPU affinity of the thread that
// makes the source, so make it before anything pins that thread to one core.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/philox.h"
#include "trainer/core/span_recorder.h"
#include "trainer/core/tensor.h"
#include "trainer/data/data_loader.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/images/augment.h"
#include "trainer/data/images/image_loader.h"

namespace trainer {

// kTrain: random crop and mirroring.  kNone: as in evaluation, the centre of the image.
enum class Augment { kTrain, kNone };

// What to do about a record that cannot be used.  kStop: Next throws.  kSkip: in training the
// record's place goes to the next good one in the order of the epoch, in evaluation the image does
// not count; after `max_bad_records` different ones, and where no record of the set is good, Next
// throws.
enum class BadRecords { kStop, kSkip };

struct TfRecordLoaderOptions {
  // What the batches hold.
  std::string data_dir;
  std::string
      data_idx_dir;  // DALI's index files, same names as the data files; "": found by scanning
  std::string
      scan_cache_dir;  // where what is found by scanning is kept (scan_cache.h); "": nowhere
  RecordCacheOptions record_cache;  // records that are kept on the node
  Split split = Split::kTrain;
  bool training = true;          // endless; false: evaluation, file order, centre crop, ends
  std::int64_t batch_size = 32;  // images of a batch
  // How many batches ranks take in a step of training (GlobalBatch).
  std::int64_t accumulate = 1;
  int short_ranks = 0;
  int image_size = 224;  // pixels, height and width of the output
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 1;             // the same on all ranks
  bool shuffle = true;                // false: file order in every epoch
  Augment augment = Augment::kTrain;  // in training
  // Whose random crops Augment::kTrain takes.
  Augmentation augmentation = Augmentation::kTensorFlow;
  int classes = 1000;
  int label_offset = 1;  // file label minus this is the class; ImageNet's labels are 1..1000
  BadRecords bad_records = BadRecords::kStop;
  int max_bad_records = 100;  // of this rank
  // Told of each record that is skipped, once, from within Next; the message names file and offset.
  std::function<void(const std::string&)> on_bad_record;

  // How fast.
  int threads = 2;   // decoding threads; a core decodes about 1,500 ImageNet images per second
  int prefetch = 2;  // batches made ahead; memory: (prefetch + 1) * batch_size * image_size^2 * 3
                     // bytes, and ReadAheadFor(threads).bytes for records
  AllocateMemory allocate = AllocateOrdinaryMemory;  // of the batches
  SpanRecorder* spans = nullptr;                     // of images that the threads make; may be null
};

// Reads the record boundaries of all files.  Throws Error(EX_DATAERR) naming the directory or file
// when there is no data directory, no matching file, an empty or damaged one, one missing, an index
// file that does not fit its data, or a manifest (data_files.h) that tells of other files;
// Error(EX_OSERR) when a thread cannot be had, or the directory of record_cache cannot be used.
std::unique_ptr<DataLoader> MakeTfRecordLoader(const TfRecordLoaderOptions& options);

// One image from its record to the pixels the network sees: check, parse, choose, load.

struct SampleOptions {
  int image_size = 224;
  int classes = 1000;
  int label_offset = 1;
  bool augment = true;  // false: CentreView
  Augmentation augmentation = Augmentation::kTensorFlow;
};

struct Sample {
  std::int32_t label = 0;  // [0, classes)
  bool mirror = false;
};

// Keeps its buffers from image to image.  Not thread-safe: one per thread.
class SampleLoader {
 public:
  SampleLoader(const DataSet& data, const SampleOptions& options);  // `data` must outlive it

  // Writes image_size x image_size x 3 bytes of RGB to `pixels`; `random` decides the augmentation.
  // Throws Error(EX_DATAERR) "PATH, record at offset N: ..." if the record cannot be used.
  Sample Load(std::int64_t record, Random random, std::span<std::uint8_t> pixels);
  // The same of a record whose bytes DataSet::Fetch gave.
  Sample LoadFetched(std::int64_t record, std::span<const std::uint8_t> bytes, Random random,
                     std::span<std::uint8_t> pixels);

 private:
  Sample LoadChecked(std::int64_t record, std::span<const std::uint8_t> data, Random& random,
                     std::span<std::uint8_t> pixels);
  Sample LoadUnnamed(std::span<const std::uint8_t> data, Random& random,
                     std::span<std::uint8_t> pixels);

  const DataSet& data_;
  SampleOptions options_;
  std::vector<std::uint8_t> record_;
  ImageLoader image_;
};

// The class of a file label.  Throws Error(EX_DATAERR) naming the label and the allowed range.
std::int32_t ClassOfLabel(std::int64_t label, int classes, int label_offset);

}  // namespace trainer
