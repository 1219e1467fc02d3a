// SPDX-License-Identifier: Apache-2.0
//
// Accuracy over a whole set of images, each counted once, all ranks sharing the work.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/class_list.h"
#include "trainer/data/data_loader.h"
#include "trainer/model/network.h"
#include "trainer/train/config.h"
#include "trainer/train/schedule.h"
#include "trainer/train/step/batch_feed.h"

namespace trainer {

struct EvaluationResult {
  double top1 = 0;  // fractions of 1
  double top5 = 0;
  double loss = 0;  // mean cross-entropy without label smoothing
  std::int64_t images = 0;
  std::int64_t steps = 0;
  double seconds = 0;            // from the first batch asked for to the last counted
  double images_per_second = 0;  // images / seconds, all ranks together
};

struct EvaluationDeps {
  Backend& backend;
  Network& network;
  DeviceBatch& device_batch;
  Communicator& communicator;
  Stream& stream;
};

// Runs `source`, an evaluation source, from its start to its end, with the mean running statistics
// of all ranks.  The network is afterwards as before.  Collective; the same result on every rank.
// On a device, one batch is computed while the next is fetched and copied, and while the ranks add
// up what they have found in the one before; the sums are those of one batch after the other.
// nullopt: `stop_requested` was true on some rank, and all left after the same batch.
// Throws Error(EX_DATAERR) when there is no image.
std::optional<EvaluationResult> Evaluate(const EvaluationDeps& deps, DataLoader& source,
                                         const std::function<bool()>& stop_requested);

// Throws NotFinite where the loss is NaN; `is_of_training`: of weights that this run has trained.
void RequireNumbers(const EvaluationResult& result, bool is_of_training);

// When an evaluation is due in the midst of a training.
class Evaluations {
 public:
  // Collective: rank 0 reads what is noted in ModelDirectory(config).  `schedule`: of this launch.
  // `config` outlives it.  What was found of other images than config.data.validation does not
  // count.  Throws Error(EX_OSERR) where that cannot be read.
  Evaluations(const TrainConfig& config, Communicator& communicator, const Schedule& schedule);

  // The launch goes on by another schedule, from a checkpoint.
  void Resume(const Schedule& schedule) { schedule_ = schedule; }

  // Whether the weights after `step` updates are to be evaluated.  Those of the end of the training
  // are not meant: they always are.
  bool IsDue(std::int64_t step) const;
  // Whether that was so where this launch begins, and has not been done.
  bool IsOverdue() const { return first_top1_ < 0 && IsDue(schedule_.start.step); }

  // What was found, a fraction of 1.  Returns whether it is better than all before.
  bool Add(double top1);
  // Whether it ends the training.
  bool ReachesTarget(double top1) const;
  // Of the weights that this launch begins with; below 0: not known.
  double first_top1() const { return first_top1_; }
  // Rank 0: what people should know where the best so far was found of other images; "".
  const std::string& note() const { return note_; }

 private:
  const TrainConfig& config_;
  Schedule schedule_;
  double first_top1_ = -1;
  double best_top1_ = -1;  // below 0: there is none
  std::string note_;
};

// --mode=predict: the most probable classes of single images, and how people and programs read
// them.

inline constexpr int kPredictedClasses = 5;

struct Prediction {
  int label = 0;           // class, [0, classes)
  double probability = 0;  // softmax
};

struct ImagePrediction {
  std::filesystem::path file;
  std::vector<Prediction> classes;  // the most probable first
  std::string problem;              // why the file could not be read; "": it was
};

// The `count` most probable classes (or all, if there are fewer), the most probable first; of equal
// ones the lower first.
std::vector<Prediction> TopClasses(std::span<const float> logits, int count);

// The five most probable classes of the image in `file`, which is read as records and conversions
// are (data/images/image_loader.h), cropped and resized as in evaluation; or what is wrong with
// the file. Throws Error(EX_SOFTWARE) where the network gives NaN. REQUIRES: the network's
// images are square.
ImagePrediction PredictImage(const std::filesystem::path& file, Backend& backend, Network& network,
                             DeviceBatch& device_batch, Stream& stream);

// One line for each class, "class 0 probability 0.93 n01440764 tench, Tinca tinca": its number from
// 0, and, where `classes` has it, its name and text.  Of several images each begins with a line
// "FILE:"; "FILE: PROBLEM" is all there is of one that could not be read.  Control characters in a
// name are written as \n and \x1b.
std::string FormatPredictions(std::span<const ImagePrediction> predictions,
                              const std::vector<ImageClass>& classes);

// JSON lines: one object for each image, in the order of `predictions`,
//   {"file": FILE, "classes": [{"class": 0, "label": 1, "name": ..., "text": ..., "probability":
//   0.93}, ...]}
// the most probable class first; "label" is what data files say, "name" and "text" are there where
// `classes` has them.  {"file": FILE, "error": PROBLEM} of one that could not be read.
std::string FormatPredictionsAsJson(std::span<const ImagePrediction> predictions,
                                    const std::vector<ImageClass>& classes);

}  // namespace trainer
