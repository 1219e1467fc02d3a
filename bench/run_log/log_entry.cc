// SPDX-License-Identifier: Apache-2.0

#include "bench/run_log/log_entry.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <string>

#include "trainer/core/error.h"

namespace bench {
namespace {

constexpr std::string_view kDll = "DLL ";
constexpr std::string_view kNvlogStart = ":::NVLOG";
constexpr std::string_view kKeyEnd = ": ";
// Beyond what a step has of batches.
constexpr double kMaxBatches = 1e12;
constexpr double kMaxImages = 1e12;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads fixed pieces of a text from its front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }

  bool Take(std::string_view piece) {
    if (!rest_.starts_with(piece)) return false;
    rest_.remove_prefix(piece.size());
    return true;
  }

  // A number of `min` to `max` digits; how many there were goes to `digits`.
  std::optional<std::int64_t> TakeDigits(std::size_t min, std::size_t max, std::size_t& digits) {
    std::int64_t number = 0;
    for (digits = 0; digits < max && digits < rest_.size() && IsDigit(rest_[digits]); ++digits) {
      number = 10 * number + (rest_[digits] - '0');
    }
    if (digits < min) return std::nullopt;
    rest_.remove_prefix(digits);
    return number;
  }

  std::optional<std::int64_t> TakeDigits(std::size_t min, std::size_t max) {
    std::size_t digits = 0;
    return TakeDigits(min, max, digits);
  }

 private:
  std::string_view rest_;
};

// The time at the front of what `scanner` has left.
std::optional<std::int64_t> TakeTime(Scanner& scanner) {
  const auto year = scanner.TakeDigits(4, 4);
  if (!year || !scanner.Take("-")) return std::nullopt;
  const auto month = scanner.TakeDigits(1, 2);
  if (!month || !scanner.Take("-")) return std::nullopt;
  const auto day = scanner.TakeDigits(1, 2);
  if (!day || !scanner.Take(" ")) return std::nullopt;
  const auto hour = scanner.TakeDigits(1, 2);
  if (!hour || !scanner.Take(":")) return std::nullopt;
  const auto minute = scanner.TakeDigits(1, 2);
  if (!minute || !scanner.Take(":")) return std::nullopt;
  const auto second = scanner.TakeDigits(1, 2);
  if (!second || !scanner.Take(".")) return std::nullopt;
  std::size_t digits = 0;
  auto fraction = scanner.TakeDigits(1, 6, digits);
  if (!fraction) return std::nullopt;
  for (; digits < 6; ++digits) *fraction *= 10;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 61) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + *hour) * 60 + *minute) * 60 + *second) * 1'000'000 + *fraction;
}

// "(0, 21)", "(0,)", "()".
std::optional<std::vector<std::int64_t>> TakeStep(Scanner& scanner) {
  constexpr std::size_t kMaxDigits = 18;
  std::vector<std::int64_t> step;
  if (!scanner.Take("(")) return std::nullopt;
  while (!scanner.Take(")")) {
    const auto number = scanner.TakeDigits(1, kMaxDigits);
    if (!number) return std::nullopt;
    step.push_back(*number);
    if (scanner.Take(", ") || scanner.Take(",")) continue;
    if (!scanner.Take(")")) return std::nullopt;
    break;
  }
  return step;
}

// The text up to the next blank, which is taken too; nothing where no blank follows: the line may
// be torn there.
std::optional<std::string_view> TakeWord(std::string_view& text) {
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end + 1);
  return word;
}

// "imgs_per_sec : 365.1 images/s cross_entropy : 7.0 ": behind each value a blank, its unit, which
// may be nothing, and between metrics one more blank.
std::vector<KeyValue> MetricsOf(std::string_view text) {
  std::vector<KeyValue> values;
  for (;;) {
    const auto key = TakeWord(text);
    if (!key || !text.starts_with(kKeyEnd)) return values;
    text.remove_prefix(kKeyEnd.size());
    const auto value = TakeWord(text);
    if (!value) return values;
    values.emplace_back(*key, *value);
    if (!TakeWord(text)) return values;
  }
}

// " batch_size : 256  data_dir : /my data  seed : 1 ": a value may have blanks in it, so that it
// goes as far as the two between options, or the one at the end.
std::vector<KeyValue> OptionsOf(std::string_view text) {
  constexpr std::string_view kBetween = " : ";
  std::vector<KeyValue> values;
  if (text.starts_with(' ')) text.remove_prefix(1);
  for (;;) {
    const std::size_t key_end = text.find(kBetween);
    if (key_end == std::string_view::npos) return values;
    const std::string_view key = text.substr(0, key_end);
    text.remove_prefix(key_end + kBetween.size());
    const std::size_t end = text.find("  ");
    if (end == std::string_view::npos) {
      if (text.ends_with(' ')) values.emplace_back(key, text.substr(0, text.size() - 1));
      return values;
    }
    values.emplace_back(key, text.substr(0, end));
    text.remove_prefix(end + 2);
  }
}

LogEntry ParseDll(std::string_view line) {
  LogEntry entry;
  Scanner scanner(line);
  if (!TakeTime(scanner) || !scanner.Take(" - ")) return entry;
  if (scanner.Take("PARAMETER")) {
    entry.kind = EntryKind::kDllOptions;
    entry.values = OptionsOf(scanner.rest());
    return entry;
  }
  auto step = TakeStep(scanner);
  if (!step || !scanner.Take(" ")) return entry;
  entry.kind = EntryKind::kDllStep;
  entry.step = std::move(*step);
  entry.values = MetricsOf(scanner.rest());
  return entry;
}

// Behind ":::NVLOG": version, model, seconds, place, each with a blank behind it; then the text.
LogEntry ParseNvlog(std::string_view line) {
  LogEntry entry;
  constexpr int kWordsBefore = 4;
  for (int i = 0; i < kWordsBefore; ++i) {
    if (!TakeWord(line)) return entry;
  }
  entry.kind = EntryKind::kNvlog;
  const std::size_t end = line.find(kKeyEnd);
  if (end == std::string_view::npos) {
    entry.values.emplace_back(line, std::string_view());
  } else {
    entry.values.emplace_back(line.substr(0, end), line.substr(end + kKeyEnd.size()));
  }
  return entry;
}

}  // namespace

LogEntry ParseLogEntry(std::string_view line) {
  if (const std::size_t at = line.find(kNvlogStart); at != std::string_view::npos) {
    return ParseNvlog(line.substr(at));
  }
  if (const std::size_t at = line.find(kDll); at != std::string_view::npos) {
    return ParseDll(line.substr(at + kDll.size()));
  }
  return {};
}

std::optional<std::string_view> ValueOf(const LogEntry& entry, std::string_view key) {
  for (const auto& [name, value] : entry.values) {
    if (name == key) return value;
  }
  return std::nullopt;
}

std::optional<double> NumberOf(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> BatchesOfStep(std::string_view mode, std::string_view accumulate) {
  // The trainer takes the option in this mode too, and computes single batches all the same.
  if (accumulate.empty() || mode == "inference_benchmark") return 1;
  const auto number = NumberOf(accumulate);
  if (!number || !(*number >= 1) || *number > kMaxBatches || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> BatchesOfStep(const LogEntry& options) {
  return BatchesOfStep(ValueOf(options, "mode").value_or(""),
                       ValueOf(options, "accumulate").value_or(""));
}

std::optional<std::int64_t> FixedGlobalBatch(std::string_view mode, std::string_view images) {
  if (mode == "inference_benchmark") return std::nullopt;
  const auto number = NumberOf(images);
  if (!number || !(*number >= 1) || *number > kMaxImages || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> FixedGlobalBatch(const LogEntry& options) {
  return FixedGlobalBatch(ValueOf(options, "mode").value_or(""),
                          ValueOf(options, "global_batch_size").value_or(""));
}

std::optional<std::int64_t> MicrosecondsOf(std::string_view line) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (!IsDigit(line[at])) continue;
    Scanner scanner(line.substr(at));
    if (const auto time = TakeTime(scanner)) return time;
  }
  return std::nullopt;
}

namespace {

// Beyond what a run has of anything that is counted here.
constexpr double kMaxCount = 1e12;

trainer::Error Wrong(std::string_view key, std::string_view value, const std::string& why) {
  return {EX_DATAERR, std::string(key) + " is '" + std::string(value) + "', " + why};
}

double NumberIn(std::string_view key, std::string_view value) {
  const auto number = NumberOf(value);
  if (!number) throw Wrong(key, value, "which is not numeric");
  return *number;
}

double CountIn(std::string_view key, std::string_view value, double min) {
  const double number = NumberIn(key, value);
  if (number < min || number > kMaxCount || number != std::floor(number)) {
    throw Wrong(key, value, "which is not numeric of this kind");
  }
  return number;
}

}  // namespace

void RunSteps::Add(std::string_view line) {
  const LogEntry entry = ParseLogEntry(line);
  if (entry.kind == EntryKind::kDllOptions) {
    const auto batches = BatchesOfStep(entry);
    if (!batches) {
      throw Wrong("accumulate", ValueOf(entry, "accumulate").value_or(""),
                  "which is not numeric of this kind");
    }
    batches_ = static_cast<double>(*batches);
    fixed_ = FixedGlobalBatch(entry);
    return;
  }
  if (entry.kind != EntryKind::kNvlog) return;
  const auto& [key, value] = entry.values.front();
  if (key == "Num GPUs") {
    ranks_ = CountIn(key, value, 1);
  } else if (key == "Per-GPU Batch Size") {
    batch_ = CountIn(key, value, 1);
  } else if (key == "iteration") {
    RunStep step;
    step.iteration = static_cast<std::int64_t>(CountIn(key, value, 0));
    if (step.iteration != static_cast<std::int64_t>(steps_.size())) {
      throw Wrong(key, value, "and the one before it is missing; --display_every must be 1");
    }
    open_ = step;
  } else if (key == "imgs_per_sec" && open_) {
    open_->images_per_second = NumberIn(key, value);
    if (open_->images_per_second <= 0) throw Wrong(key, value, "which is no speed");
  } else if (key == "cross_entropy" && open_) {
    open_->cross_entropy = NumberIn(key, value);
    if (open_->images_per_second == 0) {
      throw Wrong("imgs_per_sec", "", "which is missing before cross_entropy");
    }
    steps_.push_back(*open_);
    open_.reset();
  }
}

std::optional<std::int64_t> RunSteps::global_batch() const {
  if (fixed_) return fixed_;
  if (ranks_ == 0 || batch_ == 0) return std::nullopt;
  const double batch = ranks_ * batch_ * batches_;
  if (batch > kMaxCount) return std::nullopt;
  return static_cast<std::int64_t>(batch);
}

}  // namespace bench
