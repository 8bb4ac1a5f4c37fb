// SPDX-License-Identifier: Apache-2.0
#include "launch/worker_start.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "launch/affinity.h"
#include "launch/gpu_places.h"

namespace welkin::launch {
namespace {

// No process outlives the launcher, even one that was killed. The parent may have died before the request:
// then getppid() has changed.
void end_with_parent() {
  const char* parent = std::getenv("WELKIN_PARENT");
  if (parent == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(getppid()) != parent) _exit(static_cast<int>(ExitCode::Interrupted));
  unsetenv("WELKIN_PARENT");  // a process that this one starts has another parent
}

}  // namespace

void prepare_worker(const RankInfo& place, const std::string& bind) {
  end_with_parent();
  if (place.world_size == 1 && (bind == "auto" || bind == "off")) return;
  const BindRequest request{.mode = bind,
                            .local_rank = place.local_rank,
                            .local_size = place.local_size,
                            .shares_mask = place.launcher == "welkin launch",
                            .gpu_nodes = gpu_numa_nodes(std::getenv("CUDA_VISIBLE_DEVICES"))};
  const Binding binding = choose_binding(request, read_topology(), allowed_cpus(), usable_cores());
  apply_binding(binding);
  const std::string threads = std::to_string(binding.threads);
  setenv("OMP_NUM_THREADS", threads.c_str(), 0);
  setenv("WELKIN_BINDING", cat(binding.reason, "; threads ", std::getenv("OMP_NUM_THREADS")).c_str(), 1);
}

std::string binding_text(const ReadVariable& read) {
  const char* text = read("WELKIN_BINDING");
  return text == nullptr ? std::string() : text;
}

}  // namespace welkin::launch
