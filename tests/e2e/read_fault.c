// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD: positional reads and writes of files whose path contains WELKIN_FAULT_PATH fail after WELKIN_FAULT_AFTER calls,
// with WELKIN_FAULT_ERRNO.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls;

static int fails(int fd) {
  const char* wanted = getenv("WELKIN_FAULT_PATH");
  if (wanted == NULL) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (strstr(path, wanted) == NULL || calls++ < atol(getenv("WELKIN_FAULT_AFTER"))) return 0;
  errno = atoi(getenv("WELKIN_FAULT_ERRNO"));
  return 1;
}

ssize_t pread(int fd, void* to, size_t count, off_t offset) {
  static ssize_t (*next)(int, void*, size_t, off_t);
  if (next == NULL) next = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  return fails(fd) ? -1 : next(fd, to, count, offset);
}
ssize_t pread64(int fd, void* to, size_t count, off_t offset) { return pread(fd, to, count, offset); }

ssize_t pwrite(int fd, const void* from, size_t count, off_t offset) {
  static ssize_t (*next)(int, const void*, size_t, off_t);
  if (next == NULL) next = (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  return fails(fd) ? -1 : next(fd, from, count, offset);
}
ssize_t pwrite64(int fd, const void* from, size_t count, off_t offset) { return pwrite(fd, from, count, offset); }
