// SPDX-License-Identifier: Apache-2.0
//
// A stream is a queue of work on a device, done in order; an event is a point in it.  On a CPU
// every call is complete when it returns, and an event is a reading of the clock.

#pragma once

namespace trainer {

class Stream {
 public:
  virtual ~Stream() = default;
  // Returns when all queued work is done.  Throws Error if any of it failed.
  virtual void Synchronize() = 0;
  // Whether it is done by now, without waiting.  Throws as Synchronize does.
  virtual bool Finished() { return true; }
  // Whether what is queued on it is recorded now (backend/backend.h).
  virtual bool Records() const { return false; }
  // What the device's own interface calls this queue (a cudaStream_t); null on a CPU.
  virtual void* handle() const { return nullptr; }
};

class Event {
 public:
  virtual ~Event() = default;
  // Marks the point that `stream` has reached.
  virtual void Record(Stream& stream) = 0;
  // The same for SecondsSince alone; in work that is recorded (backend/backend.h), the point of its
  // last run.
  virtual void RecordTime(Stream& stream) { Record(stream); }
  // Makes later work of `stream` wait for this point; does not block the caller.
  virtual void MakeWait(Stream& stream) = 0;
  // Blocks the caller until the point is reached.
  virtual void Synchronize() = 0;
  // Seconds from `earlier` to this event.  REQUIRES: both recorded and reached.
  virtual double SecondsSince(const Event& earlier) const = 0;
};

}  // namespace trainer
