// SPDX-License-Identifier: Apache-2.0
// What precompiles the headers of the tests (cmake/targets.cmake) needs a source.
int main() {}
