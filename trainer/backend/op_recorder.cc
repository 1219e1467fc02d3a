// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/op_recorder.h"

namespace trainer {

int OpRecorder::Add(ProfiledOp op) {
  ops_.push_back(std::move(op));
  return static_cast<int>(ops_.size()) - 1;
}

void OpRecorder::Start() {
  for (ProfiledOp& op : ops_) {
    op.calls = 0;
    op.seconds = 0;
  }
  count_ = 0;
  first_.reset();
  start_ = std::chrono::steady_clock::now();
  is_on_ = true;
}

void OpRecorder::Begin(int op, const void* parameter, Stream& stream) {
  ProfiledOp& called = ops_[static_cast<std::size_t>(op)];
  if (called.layer.empty()) {
    const auto layer = layers_.find(parameter);
    called.layer = layer != layers_.end() ? layer->second : called.op;
  }
  if (count_ == calls_.size()) calls_.push_back({op, make_event_(), make_event_()});
  Call& call = calls_[count_];
  call.op = op;
  if (!first_) {
    first_ = make_event_();
    first_->RecordTime(stream);
    seconds_to_first_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  call.begin->RecordTime(stream);
}

void OpRecorder::End(Stream& stream) {
  calls_[count_].end->RecordTime(stream);
  ++count_;
}

void OpRecorder::Collect(const ReportCall& each) {
  for (std::size_t i = 0; i < count_; ++i) {
    const Call& call = calls_[i];
    call.end->Synchronize();
    ProfiledOp& op = ops_[static_cast<std::size_t>(call.op)];
    const double seconds = call.end->SecondsSince(*call.begin);
    op.seconds += seconds;
    ++op.calls;
    if (each) each({op, seconds_to_first_ + call.begin->SecondsSince(*first_), seconds});
  }
  count_ = 0;
}

std::vector<ProfiledOp> OpRecorder::Ops() const {
  std::vector<ProfiledOp> called;
  for (const ProfiledOp& op : ops_) {
    if (op.calls > 0) called.push_back(op);
  }
  return called;
}

}  // namespace trainer
