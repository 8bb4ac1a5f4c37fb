// SPDX-License-Identifier: Apache-2.0
// Copying from a file mapping that another process may truncate: the SIGBUS that this raises becomes a return value.
#pragma once

#include <cstddef>
#include <span>

namespace welkin::data {

// Calls copy(context), which may read `mapping`, must not own anything (no destructors, no locks, no allocation: it may be left
// in the middle) and must not throw. False: a page of `mapping` was gone. Signals elsewhere keep their former handler. The first
// call installs a process-wide SIGBUS handler: a signal's disposition is the process's, not a thread's.
bool copy_guarded(std::span<const std::byte> mapping, void (*copy)(const void* context), const void* context);

// The same for a callable.
template <typename Copy>
bool copy_guarded(std::span<const std::byte> mapping, const Copy& copy) {
  return copy_guarded(
      mapping, [](const void* context) { (*static_cast<const Copy*>(context))(); }, &copy);
}

}  // namespace welkin::data
