// SPDX-License-Identifier: Apache-2.0

#include "ddldata/xml_scanner.h"

#include <algorithm>
#include <utility>

#include "trainer/data/files/text_lines.h"

namespace trainer {
namespace {

constexpr std::string_view kXmlSpace = " \t\r\n";

}  // namespace

XmlScanner::XmlScanner(std::string_view text, std::string path)
    : text_(WithoutByteOrderMark(text)), path_(std::move(path)) {}

void XmlScanner::Fail(const std::string& what) const {
  const auto line = 1 + std::ranges::count(text_.substr(0, event_), '\n');
  throw BadLine(path_, static_cast<std::size_t>(line), what);
}

// What is before `end`, which is passed over as well.
std::string_view XmlScanner::TakeUntil(std::string_view end) {
  const std::size_t found = text_.find(end, at_);
  if (found == std::string_view::npos) {
    Fail("the file ends before a " + std::string(end) + ": it is cut off");
  }
  const std::string_view taken = text_.substr(at_, found - at_);
  at_ = found + end.size();
  return taken;
}

// Whether something that begins so was passed over.
bool XmlScanner::Skip(std::string_view begin, std::string_view end) {
  if (!text_.substr(at_).starts_with(begin)) return false;
  at_ += begin.size();
  TakeUntil(end);
  return true;
}

XmlScanner::Event XmlScanner::TakeText() {
  const std::size_t end = std::min(text_.find('<', at_), text_.size());
  const std::string_view text = text_.substr(at_, end - at_);
  at_ = end;
  if (open_.empty() && text.find_first_not_of(kXmlSpace) != std::string_view::npos) {
    Fail("text that is in no element: " + Quoted(text.substr(text.find_first_not_of(kXmlSpace))));
  }
  return {Kind::kText, text};
}

// A '>' may stand in the quotes of an attribute.
XmlScanner::Event XmlScanner::TakeBeginTag() {
  const std::size_t begin = ++at_;
  const std::size_t behind_name = text_.find_first_of(" \t\r\n/>", begin);
  const std::string_view name = text_.substr(begin, behind_name - begin);
  for (at_ = begin; at_ < text_.size() && text_[at_] != '>'; ++at_) {
    const char c = text_[at_];
    if (c == '<') Fail("a < within a tag");
    if (c != '"' && c != '\'') continue;
    ++at_;
    TakeUntil({&c, 1});
    --at_;
  }
  if (at_ == text_.size()) Fail("the file ends within a tag: it is cut off");
  is_empty_ = text_[at_ - 1] == '/';
  ++at_;
  if (name.empty()) Fail("a tag without a name");
  if (open_.empty() && has_root_) Fail("a second outermost element, " + Quoted(name));
  if (open_.size() == kMaxXmlDepth) {
    Fail("more than " + std::to_string(kMaxXmlDepth) + " elements in each other");
  }
  has_root_ = true;
  open_.push_back(name);
  return {Kind::kBegin, name};
}

XmlScanner::Event XmlScanner::TakeEndTag() {
  at_ += 2;  // </
  std::string_view name = TakeUntil(">");
  name = name.substr(0, name.find_last_not_of(kXmlSpace) + 1);
  if (open_.empty()) Fail("the end of an element " + Quoted(name) + " that did not begin");
  if (name != open_.back()) {
    Fail("the element " + Quoted(open_.back()) + " ends as " + Quoted(name));
  }
  return End();
}

XmlScanner::Event XmlScanner::End() {
  const Event event = {Kind::kEnd, open_.back()};
  open_.pop_back();
  return event;
}

XmlScanner::Event XmlScanner::Next() {
  if (is_empty_) {
    is_empty_ = false;
    return End();
  }
  while (at_ < text_.size()) {
    event_ = at_;
    const std::string_view rest = text_.substr(at_);
    if (Skip("<!--", "-->") || Skip("<?", "?>")) continue;
    if (rest.starts_with("<![CDATA[")) {
      if (open_.empty()) Fail("CDATA that is in no element");
      at_ += std::string_view("<![CDATA[").size();
      return {Kind::kText, TakeUntil("]]>")};
    }
    if (rest.starts_with("<!")) Fail("a document type or the like, which is not read");
    if (rest.starts_with("</")) return TakeEndTag();
    if (rest.starts_with("<")) return TakeBeginTag();
    const Event text = TakeText();
    if (!open_.empty()) return text;
  }
  event_ = at_;
  if (!open_.empty()) Fail("the file ends within the element " + Quoted(open_.back()));
  if (!has_root_) Fail("there is no element");
  return {};
}

}  // namespace trainer
