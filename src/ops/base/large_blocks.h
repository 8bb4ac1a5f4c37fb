// SPDX-License-Identifier: Apache-2.0
// Large tensors on a CPU live in a PageHeap (core/process/page_heap.h) instead of malloc's mappings, which the kernel clears anew
// for every step. A layer around the allocator that torch has; blocks below 2 MiB are still that one's.
#pragma once

#include <cstddef>

#include "core/process/page_heap.h"

namespace welkin::ops {

// From now on, where torch puts large tensors on huge pages (THP_MEM_ALLOC_ENABLE=1, which the launcher sets) and addresses are
// not limited. Process-wide, as torch's table of allocators is. Says whether it is so.
bool use_page_heap();

// Memory for kernels, from the same heap where it is large; aligned to a cache line. Throws std::bad_alloc.
void* allocate_cpu_block(size_t bytes);
void free_cpu_block(void* block) noexcept;

// Bytes of a block of torch's CPU allocator. Constant for the lifetime of the block.
size_t size_of_cpu_block(void* block);

// PageHeap::trim() of it.
void trim_large_blocks();

// What large tensors take; zeros while nothing is kept.
PageHeap::Use large_block_use();

}  // namespace welkin::ops
