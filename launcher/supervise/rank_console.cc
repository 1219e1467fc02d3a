// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/rank_console.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <set>

#include "support/number.h"

namespace launcher {
namespace {

constexpr char kNumberMark = '\x01';  // no plain line has it

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// How many bytes of `text` are the number that begins there: "12", "0.5", "1e-05"; 0: none does.
// A sign belongs to it unless it follows a word, as in "rank-3".
std::size_t NumberSize(std::string_view text, char before) {
  std::size_t size = 0;
  const auto take_digits = [&] {
    const std::size_t start = size;
    while (size < text.size() && IsDigit(text[size])) ++size;
    return size > start;
  };
  const bool has_sign = !text.empty() && text[0] == '-' && before != '_' &&
                        std::isalnum(static_cast<unsigned char>(before)) == 0;
  if (has_sign) ++size;
  if (!take_digits()) return 0;
  std::size_t whole = size;
  if (size < text.size() && text[size] == '.') {
    ++size;
    if (take_digits()) whole = size;
    size = whole;
  }
  if (size < text.size() && (text[size] == 'e' || text[size] == 'E')) {
    ++size;
    if (size < text.size() && (text[size] == '-' || text[size] == '+')) ++size;
    if (take_digits()) whole = size;
  }
  return whole;
}

// Calls on_text(part) and on_number(part) for what `text` is made of, in its order.
template <typename OnText, typename OnNumber>
void ForEachPart(std::string_view text, OnText on_text, OnNumber on_number) {
  char before = ' ';
  while (!text.empty()) {
    const std::size_t size = NumberSize(text, before);
    if (size > 0) {
      on_number(text.substr(0, size));
    } else {
      on_text(text.front());
    }
    before = text[std::max<std::size_t>(size, 1) - 1];
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

double ValueOf(const std::string& number) {
  return support::WholeNumber<double>(number).value_or(0);
}

// Tabs and colours are text as well.
bool IsPlainLine(std::string_view line) {
  return std::ranges::all_of(line, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\t' || c == '\x1b';
  });
}

std::string LocalTimeOfDay() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local = {};
  localtime_r(&now.tv_sec, &local);
  std::array<char, 40> text = {};
  std::snprintf(text.data(), text.size(), "%02d:%02d:%02d.%03ld", local.tm_hour, local.tm_min,
                local.tm_sec, now.tv_nsec / 1'000'000);
  return text.data();
}

}  // namespace

std::string RankRanges(std::vector<int> ranks) {
  constexpr int kMaxRanges = 8;
  std::ranges::sort(ranks);
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (++ranges > kMaxRanges) return text + ",... (" + std::to_string(ranks.size()) + " ranks)";
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (end - i > 1) text += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

RankConsole::RankConsole(ConsoleOptions options, std::function<void(int, std::string_view)> write)
    : options_(std::move(options)), write_(std::move(write)) {
  for (Stream& stream : streams_) stream.last.assign(options_.hosts.size(), stream.groups.end());
}

std::string RankConsole::TimeNow() const {
  if (options_.tag_format.find("%t") == std::string::npos) return "";
  return options_.time_of_day ? options_.time_of_day() : LocalTimeOfDay();
}

std::string RankConsole::Tag(const std::vector<int>& ranks, const std::string& time) const {
  const std::string& format = options_.tag_format.empty() ? "[%r] " : options_.tag_format;
  std::string tag;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      tag += format[i];
      continue;
    }
    const char what = format[++i];
    if (what == 'r') {
      tag += RankRanges(ranks);
    } else if (what == 'l') {
      std::set<int> local;
      for (const int rank : ranks)
        local.insert(options_.local_ranks.at(static_cast<std::size_t>(rank)));
      tag += RankRanges({local.begin(), local.end()});
    } else if (what == 'h') {
      std::set<std::string> hosts;
      for (const int rank : ranks) hosts.insert(options_.hosts.at(static_cast<std::size_t>(rank)));
      tag += hosts.size() == 1 ? *hosts.begin() : std::to_string(hosts.size()) + " hosts";
    } else {
      tag += what == 't' ? time : std::string(1, what);
    }
  }
  return tag;
}

void RankConsole::Add(int rank, int stream, std::string_view text, Clock::time_point now) {
  const bool has_end = text.ends_with('\n') || text.ends_with('\r');
  const auto known = beginnings_.find({rank, stream});
  if (has_end && known == beginnings_.end()) return AddLine(rank, stream, text, now);
  Beginning& beginning = known != beginnings_.end() ? known->second : beginnings_[{rank, stream}];
  beginning.text += text;
  if (!has_end && beginning.text.size() < kMaxBeginning) return;
  const Beginning line = beginning;
  if (has_end) {
    beginnings_.erase({rank, stream});
  } else {
    beginning = {.text = "", .is_shown = true};
  }
  if (has_end && !line.is_shown) return AddLine(rank, stream, line.text, now);
  ShowAllOf(rank, stream);
  write_(stream, line.is_shown ? line.text : Tag({rank}, TimeNow()) + line.text);
}

void RankConsole::AddLine(int rank, int stream, std::string_view text, Clock::time_point now) {
  const std::string_view line = text.substr(0, text.size() - 1);
  if (options_.fold != FoldOutput::kNone) {
    const bool may_fold =
        text.ends_with('\n') && line.size() <= kMaxFoldedBytes && IsPlainLine(line);
    if (may_fold) return Fold(rank, stream, line, now);
    ShowAllOf(rank, stream);
  }
  write_(stream, Tag({rank}, TimeNow()).append(text));
}

void RankConsole::Fold(int rank, int stream, std::string_view text, Clock::time_point now) {
  Group line;
  line.text = text;
  line.ranks = {rank};
  line.since = now;
  std::vector<Number> numbers;
  ForEachPart(
      text, [&line](char c) { line.shape += c; },
      [&](std::string_view number) {
        line.shape += kNumberMark;
        numbers.push_back({std::string(number), std::string(number)});
      });
  const bool with_numbers = options_.fold == FoldOutput::kNumbers;
  line.key = with_numbers ? line.shape : line.text;
  auto& [groups, lasts, ranks] = Of(stream);
  auto& last = lasts.at(static_cast<std::size_t>(rank));
  const auto next = last == groups.end() ? groups.begin() : std::next(last);
  const auto found = std::find_if(next, groups.end(),
                                  [&line](const Group& group) { return group.key == line.key; });
  if (found != groups.end()) {
    found->ranks.push_back(rank);
    for (std::size_t i = 0; i < found->numbers.size(); ++i) {
      Number& known = found->numbers[i];
      if (ValueOf(numbers[i].min) < ValueOf(known.min)) known.min = numbers[i].min;
      if (ValueOf(numbers[i].max) > ValueOf(known.max)) known.max = numbers[i].max;
    }
    last = found;
  } else {
    if (with_numbers) line.numbers = std::move(numbers);
    line.time = TimeNow();
    // Behind those that other ranks have printed in its place.
    const auto place = std::find_if(
        next, groups.end(), [&line](const Group& group) { return group.shape != line.shape; });
    last = groups.insert(place, std::move(line));
  }
  ++ranks;
  while (!groups.empty() &&
         (static_cast<int>(groups.front().ranks.size()) >= options_.shown_ranks ||
          groups.size() > kMaxLines || ranks > kMaxRanks)) {
    ShowFirst(stream);
  }
}

void RankConsole::ShowFirst(int stream) {
  Stream& lines = Of(stream);
  const Group& group = lines.groups.front();
  for (const int rank : group.ranks) {
    auto& last = lines.last.at(static_cast<std::size_t>(rank));
    if (last == lines.groups.begin()) last = lines.groups.end();
  }
  lines.ranks -= group.ranks.size();
  std::string line = Tag(group.ranks, group.time);
  if (group.numbers.empty()) {
    line += group.text;
  } else {
    auto number = group.numbers.cbegin();
    ForEachPart(
        group.text, [&line](char c) { line += c; },
        [&](std::string_view) {
          line += number->min == number->max ? number->min : number->min + ".." + number->max;
          ++number;
        });
  }
  write_(stream, line + "\n");
  lines.groups.pop_front();
}

void RankConsole::ShowAllOf(int rank, int stream) {
  const Stream& lines = Of(stream);
  while (lines.last.at(static_cast<std::size_t>(rank)) != lines.groups.end()) ShowFirst(stream);
}

void RankConsole::Advance(Clock::time_point now) {
  for (int stream = 1; stream <= 2; ++stream) {
    const std::list<Group>& groups = Of(stream).groups;
    const auto late = std::find_if(groups.rbegin(), groups.rend(), [now](const Group& group) {
      return now >= group.since + kMaxWait;
    });
    for (auto left = std::distance(late, groups.rend()); left > 0; --left) ShowFirst(stream);
  }
}

std::optional<RankConsole::Clock::time_point> RankConsole::deadline() const {
  std::optional<Clock::time_point> first;
  for (const Stream& stream : streams_) {
    for (const Group& group : stream.groups) {
      if (!first || group.since + kMaxWait < *first) first = group.since + kMaxWait;
    }
  }
  return first;
}

void RankConsole::Flush() {
  for (int stream = 1; stream <= 2; ++stream) {
    while (!Of(stream).groups.empty()) ShowFirst(stream);
  }
}

void RankConsole::End() {
  Flush();
  for (const auto& [whose, line] : std::exchange(beginnings_, {})) {
    write_(whose.second, (line.is_shown ? "" : Tag({whose.first}, TimeNow())) + line.text + "\n");
  }
}

}  // namespace launcher
