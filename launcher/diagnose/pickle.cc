// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/pickle.h"

#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace launcher {

// Throws std::invalid_argument for what it does not take.
class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes) : rest_(bytes) {}

  Pickle Read() {
    if (Byte() != kProtocol) Reject();
    if (const auto version = Byte(); version < 2 || version > 5) Reject();
    for (std::uint8_t code = Byte(); code != '.'; code = Byte()) Do(code);
    if (!rest_.empty() || stack_.size() != 1 || !marks_.empty()) Reject();
    pickle_.root_ = stack_.front();
    return std::move(pickle_);
  }

 private:
  using Kind = PickleValue::Kind;
  // Those codes that are no letters.
  static constexpr std::uint8_t kProtocol = 0x80, kTuple1 = 0x85, kTuple3 = 0x87, kTrue = 0x88,
                                kFalse = 0x89, kLong1 = 0x8a, kShortText = 0x8c, kMemoize = 0x94,
                                kFrame = 0x95;

  [[noreturn]] static void Reject() { throw std::invalid_argument("pickle"); }

  std::string_view Take(std::size_t count) {
    if (count > rest_.size()) Reject();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint8_t Byte() { return static_cast<std::uint8_t>(Take(1)[0]); }
  // Little-endian, of at most 8 bytes.
  std::uint64_t Whole(std::size_t bytes) {
    const std::string_view taken = Take(bytes);
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(taken[i]);
    return value;
  }
  // In two's complement.
  std::int64_t Signed(std::size_t bytes) {
    if (bytes > 8) Reject();
    if (bytes == 0) return 0;
    const std::size_t unused = 64 - 8 * bytes;
    return static_cast<std::int64_t>(Whole(bytes) << unused) >> unused;
  }

  PickleValue& Push(Kind kind) {
    if (pickle_.values_.size() == Pickle::kMaxValues) Reject();
    stack_.push_back(static_cast<std::uint32_t>(pickle_.values_.size()));
    pickle_.values_.emplace_back().kind = kind;
    return pickle_.values_.back();
  }
  // The value on the stack, which nothing above a mark reaches over.
  std::uint32_t Top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) Reject();
    return stack_.back();
  }
  // What is on the stack from there on, which is taken off it.
  std::vector<std::uint32_t> TakeFrom(std::size_t begin) {
    if (begin > stack_.size() || begin < (marks_.empty() ? 0 : marks_.back())) Reject();
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(begin);
    std::vector<std::uint32_t> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    return items;
  }
  std::vector<std::uint32_t> TakeLast(std::size_t count) {
    if (count > stack_.size()) Reject();
    return TakeFrom(stack_.size() - count);
  }
  std::vector<std::uint32_t> TakeToMark() {
    if (marks_.empty()) Reject();
    std::vector<std::uint32_t> items = TakeFrom(marks_.back());
    marks_.pop_back();
    return items;
  }
  void AddTo(Kind kind, const std::vector<std::uint32_t>& items) {
    PickleValue& value = pickle_.values_[Top()];
    added_ += items.size();  // the same value may be added without end
    if (value.kind != kind || (kind == Kind::kDict && items.size() % 2 != 0) ||
        added_ > Pickle::kMaxValues)
      Reject();
    value.items.insert(value.items.end(), items.begin(), items.end());
  }
  void PushTuple(std::vector<std::uint32_t> items) { Push(Kind::kTuple).items = std::move(items); }
  void Recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end() || stack_.size() == Pickle::kMaxValues) Reject();
    stack_.push_back(found->second);
  }

  void Do(std::uint8_t code) {
    switch (code) {
      case kFrame:
        if (Whole(8) > rest_.size()) Reject();
        return;
      case '(':
        if (marks_.size() == Pickle::kMaxValues) Reject();
        return marks_.push_back(stack_.size());
      case 'N':
        Push(Kind::kNone);
        return;
      case kTrue:
      case kFalse:
        Push(Kind::kBool).number = code == kTrue ? 1 : 0;
        return;
      case 'J':
        return PushNumber(Signed(4));
      case 'K':
        return PushNumber(static_cast<std::int64_t>(Whole(1)));
      case 'M':
        return PushNumber(static_cast<std::int64_t>(Whole(2)));
      case kLong1:
        return PushNumber(Signed(Byte()));
      case 'G':
        Take(8);
        Push(Kind::kFloat);
        return;
      case 'X':
        return PushText(Take(Whole(4)));
      case kShortText:
        return PushText(Take(Byte()));
      case ']':
        Push(Kind::kList);
        return;
      case 'a':
        return AddTo(Kind::kList, TakeLast(1));
      case 'e':
        return AddTo(Kind::kList, TakeToMark());
      case '}':
        Push(Kind::kDict);
        return;
      case 's':
        return AddTo(Kind::kDict, TakeLast(2));
      case 'u':
        return AddTo(Kind::kDict, TakeToMark());
      case ')':
        return PushTuple({});
      case 't':
        return PushTuple(TakeToMark());
      case 'q':
        memo_[Whole(1)] = Top();
        return;
      case 'r':
        memo_[Whole(4)] = Top();
        return;
      case kMemoize: {
        const std::size_t key = memo_.size();
        memo_[key] = Top();
        return;
      }
      case 'h':
        return Recall(Whole(1));
      case 'j':
        return Recall(Whole(4));
      default:
        if (code < kTuple1 || code > kTuple3) Reject();
        return PushTuple(TakeLast(static_cast<std::size_t>(code - kTuple1) + 1));
    }
  }
  void PushNumber(std::int64_t number) { Push(Kind::kInt).number = number; }
  void PushText(std::string_view text) { Push(Kind::kText).text = text; }

  std::string_view rest_;
  Pickle pickle_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // how much was on the stack at each
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;
  std::size_t added_ = 0;
};

std::optional<Pickle> Pickle::Parse(std::string_view bytes) {
  if (bytes.size() > kMaxBytes) return std::nullopt;
  try {
    return PickleReader(bytes).Read();
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

const PickleValue& Pickle::Find(const PickleValue& dict, std::string_view key) const {
  static const PickleValue none;
  if (dict.kind != PickleValue::Kind::kDict) return none;
  for (std::size_t i = dict.items.size(); i >= 2; i -= 2) {
    const PickleValue& name = At(dict.items[i - 2]);
    if (name.kind == PickleValue::Kind::kText && name.text == key) return At(dict.items[i - 1]);
  }
  return none;
}

}  // namespace launcher
