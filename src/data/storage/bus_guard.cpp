// SPDX-License-Identifier: Apache-2.0
#include "data/storage/bus_guard.h"

#include <setjmp.h>
#include <signal.h>

#include <mutex>

namespace welkin::data {
namespace {

struct ActiveCopy {
  std::span<const std::byte> mapping;
  sigjmp_buf back;
};

thread_local ActiveCopy* active_copy = nullptr;
struct sigaction former_bus_action;

void on_bus_error(int signal_number, siginfo_t* info, void* context) {
  ActiveCopy* copy = active_copy;
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  if (copy != nullptr && address >= copy->mapping.data() && address < copy->mapping.data() + copy->mapping.size()) {
    siglongjmp(copy->back, 1);
  }
  if ((former_bus_action.sa_flags & SA_SIGINFO) != 0 && former_bus_action.sa_sigaction != nullptr) {
    former_bus_action.sa_sigaction(signal_number, info, context);
    return;
  }
  if (former_bus_action.sa_handler != SIG_DFL && former_bus_action.sa_handler != SIG_IGN) {
    former_bus_action.sa_handler(signal_number);
    return;
  }
  signal(signal_number, SIG_DFL);  // the access is repeated and ends the process as it would have
}

void install_bus_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;  // NODEFER: the jump leaves the handler without a return
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &former_bus_action);
  });
}

// The jump left the handler without a return. With SA_NODEFER the signal is not blocked, but tools that stand between the
// kernel and the handler (ThreadSanitizer) block it all the same.
void unblock_bus_error() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

bool copy_guarded(std::span<const std::byte> mapping, void (*copy)(const void* context), const void* context) {
  install_bus_handler();
  ActiveCopy guard{mapping, {}};
  if (sigsetjmp(guard.back, 0) != 0) {
    active_copy = nullptr;
    unblock_bus_error();
    return false;
  }
  active_copy = &guard;
  copy(context);
  active_copy = nullptr;
  return true;
}

}  // namespace welkin::data
