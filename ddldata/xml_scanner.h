// SPDX-License-Identifier: Apache-2.0
//
// The elements of an XML document, one after the other, as far as small files of data need it:
// attributes, comments and processing instructions are passed over, CDATA is text, references such
// as &amp; stay as they are, and a document type (which could make a small file a large one) is an
// error.  Names are compared, not checked.  Input is not trusted; nothing is copied, and depth is
// limited.  Pure.  (Not expat: a dependency, with its packages and its switch, for six elements of
// one kind of file.)

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr std::size_t kMaxXmlDepth = 64;

// Not thread-safe.
class XmlScanner {
 public:
  // kEnd also follows the kBegin of <element/>.
  enum class Kind { kBegin, kEnd, kText, kDone };
  struct Event {
    Kind kind = Kind::kDone;
    std::string_view text;  // the element's name, or a piece of text of the innermost one
  };

  // `text` must outlive the scanner and all events; `path` is its name in complaints.
  XmlScanner(std::string_view text, std::string path);

  // The next event; kDone behind the one outermost element.  Throws Error(EX_DATAERR)
  // "PATH:LINE: ..." if tags do not match or something is cut off.
  Event Next();

  // Throws Error(EX_DATAERR) "PATH:LINE: WHAT" with the line of the last event.
  [[noreturn]] void Fail(const std::string& what) const;

 private:
  bool Skip(std::string_view begin, std::string_view end);
  std::string_view TakeUntil(std::string_view end);
  Event TakeText();
  Event TakeBeginTag();
  Event TakeEndTag();
  Event End();

  std::string_view text_;
  std::string path_;
  std::size_t at_ = 0;     // behind what has been read
  std::size_t event_ = 0;  // where the last event begins
  std::vector<std::string_view> open_;
  bool is_empty_ = false;  // the innermost element was <element/>
  bool has_root_ = false;
};

}  // namespace trainer
