// SPDX-License-Identifier: Apache-2.0
// Keeps large CPU tensors in a PageHeap (core/process/page_heap.h) instead of malloc's mappings, which the kernel clears anew
// for every step. It wraps torch's allocator, which still serves blocks below 2 MiB.
#pragma once

#include <cstddef>

#include "core/process/page_heap.h"

namespace welkin::ops {

// Installs it process-wide (torch's table of allocators is process-wide) if torch puts large tensors on huge pages
// (THP_MEM_ALLOC_ENABLE=1, which the launcher sets) and addresses are not limited. Returns true if it is installed.
bool use_page_heap();

// Memory for kernels, aligned to a cache line; large blocks come from the same heap. Throws std::bad_alloc.
void* allocate_cpu_block(size_t bytes);
void free_cpu_block(void* block) noexcept;

// Bytes of a block of torch's CPU allocator. Constant for the lifetime of the block.
size_t size_of_cpu_block(void* block);

// Calls PageHeap::trim() on the heap.
void trim_large_blocks();

// Memory of large tensors; zeros while nothing is kept.
PageHeap::Use large_block_use();

}  // namespace welkin::ops
