/* SPDX-License-Identifier: Apache-2.0 */
/* What the renamed stdin, stdout and stderr of the static archives mean (see WelkinStaticLibraries.cmake). */
#include <stdio.h>

#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN FILE* welkin_stdin;
HIDDEN FILE* welkin_stdout;
HIDDEN FILE* welkin_stderr;

/* 101 is the earliest priority that is not reserved: before any constructor of the archives' users. */
__attribute__((constructor(101))) static void bind_standard_streams(void) {
  welkin_stdin = stdin;
  welkin_stdout = stdout;
  welkin_stderr = stderr;
}
