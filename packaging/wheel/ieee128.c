/* SPDX-License-Identifier: Apache-2.0
 *
 * For POWER.  zig's C++ library takes long double for IEEE's 128 bits, and calls functions for it
 * that glibc has from 2.32 on; programs here take it for double (-mlong-double-64).  These are its
 * calls, none of which is made with a long double: no program here prints or reads one. */
#define _GNU_SOURCE
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PASS_ON(call)       \
  va_list values;           \
  va_start(values, format); \
  const int result = call;  \
  va_end(values);           \
  return result

int __snprintfieee128(char* text, size_t size, const char* format, ...) {
  PASS_ON(vsnprintf(text, size, format, values));
}
int __fprintfieee128(FILE* file, const char* format, ...) {
  PASS_ON(vfprintf(file, format, values));
}
int __isoc99_sscanfieee128(const char* text, const char* format, ...) {
  PASS_ON(vsscanf(text, format, values));
}
int __vsnprintfieee128(char* text, size_t size, const char* format, va_list values) {
  return vsnprintf(text, size, format, values);
}
int __vfprintfieee128(FILE* file, const char* format, va_list values) {
  return vfprintf(file, format, values);
}
int __vasprintfieee128(char** text, const char* format, va_list values) {
  return vasprintf(text, format, values);
}
__float128 __strtoieee128_l(const char* text, char** end, locale_t locale) {
  return strtod_l(text, end, locale);
}
