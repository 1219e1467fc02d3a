// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluation/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "trainer/checkpoint/retention.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/data/images/augment.h"
#include "trainer/data/images/image_files.h"
#include "trainer/data/images/image_loader.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/step/metrics.h"

namespace trainer {
namespace {

// Counts batches as they are done.
class EvaluationCount {
 public:
  EvaluationCount(Communicator& communicator, const std::function<bool()>& stop_requested)
      : communicator_(communicator), stop_requested_(stop_requested) {}

  // This rank's sums of one more batch; counted by the next Count.
  void Add(const LossSums& sums) { own_.emplace().totals.Add(sums); }
  // This rank has no batch beside the one that is not counted yet, for that reason.
  void Fail(std::exception_ptr failure) {
    if (!own_) own_.emplace();
    own_->bad_inputs = 1;
    failure_ = std::move(failure);
  }
  // Counts that batch, if there is one, over all ranks.  Collective.
  void Count() {
    if (!own_) return;
    own_->requested.stop = stop_requested_();
    const StepExchange all = Exchange(*own_, communicator_);
    own_.reset();
    totals_.Add(all.totals);
    ++steps_;
    stopped_ = all.requested.stop;
    failed_ = all.bad_inputs > 0;
  }

  const LossTotals& totals() const { return totals_; }
  std::int64_t steps() const { return steps_; }
  bool stopped() const { return stopped_; }
  // Some rank had no batch.  This one's reason is null where it is another.
  bool failed() const { return failed_; }
  const std::exception_ptr& failure() const { return failure_; }
  bool ended() const { return stopped_ || failed_; }

 private:
  Communicator& communicator_;
  const std::function<bool()>& stop_requested_;
  std::optional<StepExchange> own_;  // not counted yet
  LossTotals totals_;
  std::int64_t steps_ = 0;
  bool stopped_ = false;
  bool failed_ = false;
  std::exception_ptr failure_;
};

// All batches of the source, or those up to the one at which some rank was asked to stop.  On the
// host each is counted as soon as it is done: nothing else runs meanwhile.
EvaluationCount CountBatches(const EvaluationDeps& deps, DataLoader& source,
                             const std::function<bool()>& stop_requested) {
  constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  EvaluationCount count(deps.communicator, stop_requested);
  BatchFeed feed(deps.backend, deps.device_batch, source, kNoEnd);
  const auto has = [&](std::int64_t step) {
    try {
      return feed.Has(step, deps.stream);
    } catch (...) {
      count.Fail(std::current_exception());
      return false;
    }
  };
  source.Seek({});
  for (std::int64_t step = 0; !count.ended() && has(step); ++step) {
    const InputBatch input = feed.Take(step, /*loss_scale=*/1, deps.stream);
    QueueInference(deps.network, deps.device_batch, input, deps.stream);
    feed.FetchNext(step, deps.stream);
    count.Count();
    deps.stream.Synchronize();
    count.Add(deps.device_batch.numbers().host().loss_sums);
    if (deps.backend.is_host()) count.Count();
  }
  if (count.ended()) {
    // What was fetched and is not used may still be on its way.
    deps.device_batch.arrived().Synchronize();
  } else {
    count.Count();
  }
  return count;
}

}  // namespace

std::optional<EvaluationResult> Evaluate(const EvaluationDeps& deps, DataLoader& source,
                                         const std::function<bool()>& stop_requested) {
  const std::vector<float> own = ExportStatistics(deps.network, deps.stream);
  ImportStatistics(deps.network, MeanOverRanks(own, deps.communicator), deps.stream);

  const auto start = std::chrono::steady_clock::now();
  const EvaluationCount count = CountBatches(deps, source, stop_requested);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  ImportStatistics(deps.network, own, deps.stream);

  if (count.failed()) ThrowInputFault(count.failure(), deps.communicator);
  if (count.stopped()) return std::nullopt;
  const LossTotals& totals = count.totals();
  if (totals.samples == 0) {
    throw Error(EX_DATAERR, "there is no image to evaluate: check the validation-* files");
  }
  EvaluationResult result;
  result.steps = count.steps();
  result.top1 = totals.top1_fraction();
  result.top5 = totals.top5_fraction();
  result.loss = totals.mean_loss();
  result.images = static_cast<std::int64_t>(totals.samples);
  result.seconds = elapsed.count();
  result.images_per_second = totals.samples / elapsed.count();
  return result;
}

void RequireNumbers(const EvaluationResult& result, bool is_of_training) {
  if (std::isfinite(result.loss)) return;
  throw NotFinite(fmt::format(
      "the loss of the evaluation is {}: {}", result.loss,
      is_of_training ? "training has diverged, or the weights are broken; train again with a "
                       "smaller --lr_init or more --lr_warmup_epochs"
                     : "the training that these weights are of has diverged, or they are broken; "
                       "evaluate others"));
}

Evaluations::Evaluations(const TrainConfig& config, Communicator& communicator,
                         const Schedule& schedule)
    : config_(config), schedule_(schedule) {
  std::array<double, 2> noted = {-1, -1};
  if (communicator.rank() == 0) {
    const SplitIdentity& validation = config.data.validation;
    const std::vector<EvaluatedCheckpoint> all = ListEvaluated(ModelDirectory(config)).known;
    const std::vector<EvaluatedCheckpoint> evaluated = EvaluatedOn(validation, all);
    if (!all.empty() && IsOtherData(all.front().validation, validation)) {
      note_ = fmt::format("validation data changed since step {}: {}; {}", all.front().step,
                          DescribeOtherData(all.front().validation, validation),
                          evaluated.empty() ? "the best so far starts anew"
                                            : "what was found of others does not count");
    }
    for (const EvaluatedCheckpoint& checkpoint : evaluated) {
      if (checkpoint.step == schedule.start.step) noted[0] = checkpoint.top1;
    }
    if (const auto best = BestOf(evaluated)) noted[1] = best->top1;
  }
  communicator.Broadcast(noted.data(), sizeof noted, 0);
  first_top1_ = noted[0];
  best_top1_ = noted[1];
}

bool Evaluations::IsDue(std::int64_t step) const {
  return config_.eval_every > 0 && step < schedule_.total_steps &&
         schedule_.EndsPeriod(step, config_.eval_every);
}

bool Evaluations::Add(double top1) {
  if (top1 <= best_top1_) return false;
  best_top1_ = top1;
  return true;
}

bool Evaluations::ReachesTarget(double top1) const {
  // 28,500 of 50,000 are 56.99999999999999 % in doubles; one image of a billion is less than this.
  constexpr double kRounding = 1e-9;
  return config_.stop_at_top1 > 0 && top1 * 100 >= config_.stop_at_top1 - kRounding;
}

namespace {

void LoadImage(const std::filesystem::path& path, int size, std::span<std::uint8_t> pixels) {
  const std::string file = ReadWholeFile(path.string(), kMaxImageFileBytes);
  ImageLoader image;
  const ImageSize whole =
      image.ReadHeader({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  image.Load(CentreView(whole, size), size, pixels);
}

}  // namespace

std::vector<Prediction> TopClasses(std::span<const float> logits, int count) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  const double largest = logits[static_cast<std::size_t>(order.front())];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);

  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  std::vector<Prediction> predictions;
  for (const int label : order) {
    predictions.push_back(
        {label, std::exp(logits[static_cast<std::size_t>(label)] - largest) / sum});
  }
  return predictions;
}

ImagePrediction PredictImage(const std::filesystem::path& file, Backend& backend, Network& network,
                             DeviceBatch& device_batch, Stream& stream) {
  const NetworkSpec& spec = network.spec();
  DDL_CHECK(spec.height == spec.width);
  std::vector<std::uint8_t> pixels(
      static_cast<std::size_t>(spec.batch_size * spec.height * spec.width * 3));
  const std::vector<std::uint8_t> mirror(static_cast<std::size_t>(spec.batch_size));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(spec.batch_size));
  try {
    LoadImage(file, static_cast<int>(spec.width),
              std::span(pixels).first(pixels.size() / static_cast<std::size_t>(spec.batch_size)));
  } catch (const Error& error) {
    const bool is_of_file = error.exit_code() == EX_DATAERR || error.exit_code() == EX_OSERR;
    if (!is_of_file || dynamic_cast<const Shortage*>(&error) != nullptr) throw;
    return {file, {}, error.what()};
  }

  Infer(network, device_batch, {pixels, mirror, labels, /*valid=*/1, /*step=*/0}, stream);
  std::vector<float> logits(static_cast<std::size_t>(spec.batch_size * spec.classes));
  backend.Export(network.logits(), logits.data(), stream);
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
    throw Error(EX_SOFTWARE, "the network gives NaN for " + file.string());
  }
  return {file,
          TopClasses(std::span(logits).first(static_cast<std::size_t>(spec.classes)),
                     kPredictedClasses),
          ""};
}

namespace {

// Null where it has no name.
const ImageClass* NameOfClass(const std::vector<ImageClass>& classes, int label) {
  const auto place = static_cast<std::size_t>(label);
  return place < classes.size() && !classes[place].name.empty() ? &classes[place] : nullptr;
}

// A name may have bytes that end a line or move a terminal's cursor.
std::string OneLine(const std::filesystem::path& file) {
  std::string text;
  for (const char byte : file.string()) {
    if (byte == '\n') {
      text += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    } else {
      text += byte;
    }
  }
  return text;
}

}  // namespace

std::string FormatPredictions(std::span<const ImagePrediction> predictions,
                              const std::vector<ImageClass>& classes) {
  std::ostringstream text;
  for (const ImagePrediction& image : predictions) {
    if (!image.problem.empty()) {
      text << OneLine(image.file) << ": " << image.problem << '\n';
      continue;
    }
    if (predictions.size() > 1) text << OneLine(image.file) << ":\n";
    for (const Prediction& prediction : image.classes) {
      text << "class " << prediction.label << " probability " << prediction.probability;
      if (const ImageClass* named = NameOfClass(classes, prediction.label)) {
        text << ' ' << named->name << (named->text.empty() ? "" : " ") << named->text;
      }
      text << '\n';
    }
  }
  return text.str();
}

std::string FormatPredictionsAsJson(std::span<const ImagePrediction> predictions,
                                    const std::vector<ImageClass>& classes) {
  std::string text;
  for (const ImagePrediction& image : predictions) {
    nlohmann::ordered_json object = {{"file", image.file.string()}};
    if (!image.problem.empty()) {
      object["error"] = image.problem;
    } else {
      object["classes"] = nlohmann::ordered_json::array();
      for (const Prediction& prediction : image.classes) {
        nlohmann::ordered_json one = {{"class", prediction.label}, {"label", prediction.label + 1}};
        if (const ImageClass* named = NameOfClass(classes, prediction.label)) {
          one["name"] = named->name;
          if (!named->text.empty()) one["text"] = named->text;
        }
        one["probability"] = prediction.probability;
        object["classes"].push_back(std::move(one));
      }
    }
    // A name of a file need not be UTF-8, which JSON is.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    text += object.dump(-1, ' ', false, kReplace) + '\n';
  }
  return text;
}

}  // namespace trainer
