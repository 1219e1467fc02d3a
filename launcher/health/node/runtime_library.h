// SPDX-License-Identifier: Apache-2.0
//
// A library that the check uses where it is there: it is loaded when the check runs, so that
// ddlrun is installed without it, and without the two dozen libraries that it needs itself.

#pragma once

#include <dlfcn.h>

#include <string>
#include <utility>
#include <vector>

namespace launcher {

class RuntimeLibrary {
 public:
  // The first of `files`, as for dlopen, that can be loaded.  Never unloaded: its threads may still
  // be in it.  Its plug-ins find it as if it had been linked.
  RuntimeLibrary(std::string name, const std::vector<std::string>& files) : name_(std::move(name)) {
    for (const std::string& file : files) {
      handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (handle_ != nullptr) break;
      if (problem_.empty()) problem_ = name_ + " cannot be loaded: " + dlerror();
    }
    if (handle_ != nullptr) problem_.clear();
  }

  // A function of it or of a library that it needs, for a pointer of any type; null where there is
  // none.
  class Function {
   public:
    explicit Function(void* address) : address_(address) {}
    template <typename Type>
    operator Type*() const {  // NOLINT(google-explicit-constructor): what it is for
      return reinterpret_cast<Type*>(address_);
    }

   private:
    void* address_;
  };
  Function Find(const char* name) {
    void* address = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    if (address == nullptr && problem_.empty()) problem_ = name_ + " has no function " + name;
    return Function(address);
  }

  // Why it cannot be used: it is not there, or lacks a function.  "": it can.
  const std::string& problem() const { return problem_; }

 private:
  std::string name_;
  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace launcher
