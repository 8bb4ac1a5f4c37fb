// SPDX-License-Identifier: Apache-2.0
// A stack for the signal handlers of a computing thread. oneDNN's float32 matmuls, the default on AMD, keep values further below
// the stack pointer than the 128 bytes that a handler spares (System V ABI for x86-64, section 3.2.2). A handler that runs on
// the thread's own stack overwrites them: the heap is corrupted, or numbers are wrong.
#pragma once

#include <memory>

namespace welkin {

// While it lives, handlers with SA_ONSTACK (Python's too) use it in the thread that made it, which also destroys it. Nothing
// happens in a thread that has such a stack. The kernel gives a signal of the process to its first thread where it can, so the
// workers of a parallel loop need none.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;  // null: the thread had one
};

}  // namespace welkin
