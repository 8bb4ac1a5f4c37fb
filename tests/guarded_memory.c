// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD: aligned memory, which is that of tensors and of kernels' buffers, ends at an inaccessible page, and becomes inaccessible
// when it is freed. So a kernel that reads or writes beyond a tensor, or uses one that is gone, ends its process with SIGSEGV. AddressSanitizer
// does not see the masked vector instructions of our kernels, nor anything of PyTorch's.
// Memory is aligned to 4 bytes only, so that its last byte stands before the page: an object whose size is a multiple of its alignment has that.
// src/data/check/guarded_heap.h is the one that ships: of one thread, without small blocks, and more roughly aligned, for a library that reads files.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kPage = 4096, kAlignment = 4, kPattern = 0xA5 };
// Addresses of ours, each used once. The kernel itself maps from the top down.
static const uintptr_t kFirst = 0x100000000000, kLast = 0x500000000000;
static atomic_uintptr_t next_address = 0x100000000000;

// In front of the memory, on a page of its own.
struct header {
  uintptr_t begin;
  size_t mapped, size;
};

static struct header* header_of(uintptr_t data) { return (struct header*)(data / kPage * kPage - kPage); }

static int is_guarded(uintptr_t data) { return data >= kFirst && data < kLast; }

static void* take(size_t size) {
  if (size > kLast - kFirst) return NULL;
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  const size_t mapped = (rounded + kPage - 1) / kPage * kPage + 2 * kPage;
  const uintptr_t begin = atomic_fetch_add(&next_address, mapped);
  if (begin + mapped > kLast) return NULL;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap((void*)begin, mapped, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) return NULL;
  if (mprotect((void*)(begin + mapped - kPage), kPage, PROT_NONE) != 0) return NULL;
  const uintptr_t data = begin + mapped - kPage - rounded;
  *header_of(data) = (struct header){.begin = begin, .mapped = mapped, .size = size};
  return memset((void*)data, kPattern, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  (void)alignment;
  *out = take(size);
  return *out == NULL ? ENOMEM : 0;
}

void* aligned_alloc(size_t alignment, size_t size) {
  (void)alignment;
  return take(size);
}

void free(void* memory) {
  static void (*next)(void*);
  if (next == NULL) next = (void (*)(void*))dlsym(RTLD_NEXT, "free");
  if (!is_guarded((uintptr_t)memory)) return next(memory);
  const struct header head = *header_of((uintptr_t)memory);
  mmap((void*)head.begin, head.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

size_t malloc_usable_size(void* memory) {
  static size_t (*next)(void*);
  if (next == NULL) next = (size_t(*)(void*))dlsym(RTLD_NEXT, "malloc_usable_size");
  return is_guarded((uintptr_t)memory) ? header_of((uintptr_t)memory)->size : next(memory);
}

void* realloc(void* memory, size_t size) {
  static void* (*next)(void*, size_t);
  if (next == NULL) next = (void* (*)(void*, size_t))dlsym(RTLD_NEXT, "realloc");
  if (!is_guarded((uintptr_t)memory)) return next(memory, size);
  const size_t before = header_of((uintptr_t)memory)->size;
  void* const moved = malloc(size);
  if (moved == NULL) return NULL;
  memcpy(moved, memory, before < size ? before : size);
  free(memory);
  return moved;
}
