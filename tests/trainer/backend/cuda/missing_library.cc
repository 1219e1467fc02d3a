// SPDX-License-Identifier: Apache-2.0
//
// For loader_test.cc: a library that is no module, and that module_without_library.cc does not
// find.

extern "C" int InMissingLibrary() { return 0; }
