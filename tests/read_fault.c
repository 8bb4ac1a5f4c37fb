// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD: positional reads and writes of files whose path contains WELKIN_FAULT_PATH fail after WELKIN_FAULT_AFTER calls,
// with WELKIN_FAULT_ERRNO; those of one offset alone where WELKIN_FAULT_OFFSET is given, and from one on where WELKIN_FAULT_FROM is. Pages
// from WELKIN_FAULT_MAP on of mappings of these files cannot be had, as when the disk fails (SIGBUS). Reads first wait for WELKIN_FAULT_WAIT_MS, and
// WELKIN_FAULT_ERRNO 0 does nothing but that. WELKIN_OPEN_LOG is a file that gets the paths of all files that are opened.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_long calls;

static int is_wanted(int fd) {
  const char* wanted = getenv("WELKIN_FAULT_PATH");
  if (wanted == NULL) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, wanted) != NULL;
}

static int fails(int fd, off_t offset) {
  if (!is_wanted(fd) || calls++ < atol(getenv("WELKIN_FAULT_AFTER"))) return 0;
  const char* only = getenv("WELKIN_FAULT_OFFSET");
  if (only != NULL && offset != atol(only)) return 0;
  const char* from = getenv("WELKIN_FAULT_FROM");
  if (from != NULL && offset < atol(from)) return 0;
  const char* wait_ms = getenv("WELKIN_FAULT_WAIT_MS");
  if (wait_ms != NULL) usleep(1000 * (useconds_t)atol(wait_ms));
  errno = atoi(getenv("WELKIN_FAULT_ERRNO"));
  return errno != 0;
}

// Pages of a mapping behind the end of its file raise SIGBUS, and so do those that the disk does not give.
void* mmap(void* where, size_t length, int protection, int flags, int fd, off_t offset) {
  static void* (*next)(void*, size_t, int, int, int, off_t);
  if (next == NULL) next = (void* (*)(void*, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  void* const mapped = next(where, length, protection, flags, fd, offset);
  const char* first = getenv("WELKIN_FAULT_MAP");
  if (first == NULL || mapped == MAP_FAILED || fd < 0 || !is_wanted(fd) || (size_t)atol(first) >= length) return mapped;
  const int empty = memfd_create("nothing", MFD_CLOEXEC);
  next((char*)mapped + atol(first), length - (size_t)atol(first), protection, MAP_SHARED | MAP_FIXED, empty, 0);
  close(empty);
  return mapped;
}
void* mmap64(void* where, size_t length, int protection, int flags, int fd, off_t offset) {
  return mmap(where, length, protection, flags, fd, offset);
}

// Every file that is opened, as a line of WELKIN_OPEN_LOG.
static void log_open(const char* path) {
  const char* log = getenv("WELKIN_OPEN_LOG");
  if (log == NULL || strcmp(path, log) == 0) return;
  char line[4096];
  const int length = snprintf(line, sizeof line, "%s\n", path);
  static int (*next)(const char*, int, ...);
  if (next == NULL) next = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  const int fd = next(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (write(fd, line, (size_t)length) < 0) errno = 0;
  close(fd);
}

#define WRAP_OPEN(name)                                                                     \
  int name(const char* path, int flags, ...) {                                              \
    static int (*next)(const char*, int, ...);                                              \
    if (next == NULL) next = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name);       \
    va_list more;                                                                           \
    va_start(more, flags);                                                                  \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;                  \
    va_end(more);                                                                           \
    log_open(path);                                                                         \
    return next(path, flags, mode);                                                         \
  }
WRAP_OPEN(open)
WRAP_OPEN(open64)

ssize_t pread(int fd, void* to, size_t count, off_t offset) {
  static ssize_t (*next)(int, void*, size_t, off_t);
  if (next == NULL) next = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  return fails(fd, offset) ? -1 : next(fd, to, count, offset);
}
ssize_t pread64(int fd, void* to, size_t count, off_t offset) { return pread(fd, to, count, offset); }

ssize_t pwrite(int fd, const void* from, size_t count, off_t offset) {
  static ssize_t (*next)(int, const void*, size_t, off_t);
  if (next == NULL) next = (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  return fails(fd, offset) ? -1 : next(fd, from, count, offset);
}
ssize_t pwrite64(int fd, const void* from, size_t count, off_t offset) { return pwrite(fd, from, count, offset); }
