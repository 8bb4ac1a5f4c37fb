// SPDX-License-Identifier: Apache-2.0
#include "core/process/signal_stack.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>

namespace welkin {
namespace {

// A frame has all vector registers: 3 KiB with AVX-512, 11 KiB with AMX.
size_t signal_stack_bytes() {
  constexpr long kLeast = 64 << 10;
  return static_cast<size_t>(std::max(kLeast, 4 * sysconf(_SC_MINSIGSTKSZ)));
}

}  // namespace

SignalStack::SignalStack() {
  stack_t present{};
  if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  memory_ = std::make_unique<char[]>(signal_stack_bytes());
  stack_t own{};
  own.ss_sp = memory_.get();
  own.ss_size = signal_stack_bytes();
  if (sigaltstack(&own, nullptr) != 0) memory_.reset();
}

SignalStack::~SignalStack() {
  if (!memory_) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace welkin
