// SPDX-License-Identifier: Apache-2.0
//
// Times every op that a back end runs, by two events around each call: on a CPU readings of the
// clock, on a GPU points of its stream.  backend/measured_backend.h makes the calls.
//
// Memory is taken for the first step that is recorded and used again for the others.  While it is
// off a call costs a comparison.
//
// Used from one thread, that of the back end; gone before the back end is.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/core/profiled_op.h"
#include "trainer/core/stream.h"

namespace trainer {

// One call.
struct RecordedOp {
  const ProfiledOp& op;
  double begin = 0;  // seconds since Start
  double seconds = 0;
};

class OpRecorder {
 public:
  using MakeEvent = std::function<std::unique_ptr<Event>()>;
  explicit OpRecorder(MakeEvent make_event) : make_event_(std::move(make_event)) {}

  // An op that may be called, without a layer where the layer is that of its parameter; the number
  // to call it by.
  int Add(ProfiledOp op);
  // Ops with the parameter at `parameter` belong to `layer`.
  void NameLayer(const void* parameter, const std::string& layer) { layers_[parameter] = layer; }

  // Forgets what was recorded before.
  void Start();
  void Stop() { is_on_ = false; }
  bool is_on() const { return is_on_; }

  // Does `work`, which queues a call on `stream`; calls do not contain each other.  `parameter` may
  // be null.
  template <typename Work>
  void Run(int op, const void* parameter, Stream& stream, const Work& work) {
    if (!is_on_) {
      work();
      return;
    }
    Begin(op, parameter, stream);
    work();
    End(stream);
  }

  // Adds up the calls since the last Collect, for whose work it waits.  `each` is told of every
  // one, in the order of the calls; may be empty.
  using ReportCall = std::function<void(const RecordedOp&)>;
  void Collect(const ReportCall& each = {});
  // Leaves out the calls since the last Collect, whose work is done.
  void Drop() { count_ = 0; }
  // Those that were called, as they were added, up to the last Collect.  An op without a layer has
  // the name of the op for one.
  std::vector<ProfiledOp> Ops() const;

 private:
  struct Call {
    int op = 0;
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };

  void Begin(int op, const void* parameter, Stream& stream);
  void End(Stream& stream);

  const MakeEvent make_event_;
  bool is_on_ = false;
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<Event> first_;  // the begin of the first call
  double seconds_to_first_ = 0;   // from Start, as the host saw it
  std::vector<ProfiledOp> ops_;
  std::map<const void*, std::string> layers_;
  std::vector<Call> calls_;
  std::size_t count_ = 0;  // of calls_, since the last Collect
};

}  // namespace trainer
