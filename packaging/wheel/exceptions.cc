// SPDX-License-Identifier: Apache-2.0
//
// Which exceptions a thread has thrown and not yet caught: one state for program and module.  zig
// links each with a C++ library of its own, of which this takes the place of
// cxa_exception_storage.cpp; a program hands its state over to a module before it calls anything
// that throws (trainer/backend/cuda/loader.cc, doc/decisions/0092).  Otherwise
// std::uncaught_exceptions() of the program would not count what the module has thrown, and a
// communicator would end as if nothing had happened.

namespace {

// __cxa_eh_globals of the Itanium C++ ABI, 2.2.2.
struct Exceptions {
  void* caught;
  unsigned uncaught;
};

using GetExceptions = void* (*)();  // of the thread that calls

void* OwnExceptions() {
  static thread_local Exceptions of_thread = {};
  return &of_thread;
}

GetExceptions get_exceptions = OwnExceptions;

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void ddltrain_share_exceptions(GetExceptions of_program) {
  get_exceptions = of_program;
}

void* __cxa_get_globals() { return get_exceptions(); }
void* __cxa_get_globals_fast() { return get_exceptions(); }
}
