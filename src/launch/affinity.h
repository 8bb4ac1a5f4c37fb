// SPDX-License-Identifier: Apache-2.0
// Chooses the cores of a process of a run. The choice is a pure function of the machine's facts. One call applies it before
// torch is loaded, so that its thread pools have the right size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::launch {

// One logical CPU and where it sits.
struct Cpu {
  int64_t number = 0;
  int64_t numa_node = 0;
  int64_t core = 0;  // of the package; two hardware threads share one
  int64_t package = 0;
};

// The CPUs that this machine shows under /sys, ordered by NUMA node, package and core.
struct CpuTopology {
  std::vector<Cpu> cpus;  // online ones
};
CpuTopology read_topology();
std::vector<int64_t> allowed_cpus();  // of this process, ascending

struct Binding {
  std::vector<int64_t> cpus;  // empty: left as it is
  int64_t threads = 1;        // threads that the process should compute with
  std::string reason;         // for the log: "auto: 2 of 8 cores, NUMA node 0"
};

struct BindRequest {
  std::string mode = "auto";  // "off", "auto", or a list for each local rank: "0-3:4-7"
  int64_t local_rank = 0, local_size = 1;
  bool shares_mask = false;  // true: all processes of the node have the same allowed CPUs, which is known where we started them
  std::vector<int64_t> gpu_nodes = {};  // by local rank: the NUMA node of its GPU. Fewer than there are ranks: not known
};

// auto: an equal, contiguous share of the allowed cores, NUMA node by NUMA node, in the order of the ranks' GPUs there, so that
// a rank computes near its GPU. Where that is not known, it is in the order of the ranks. Nothing is bound where there are more
// processes than cores, where the process is alone, or where the launcher has already narrowed the mask. `quota` is the number
// of cores that a cgroup allows. Throws ConfigError for a list that is wrong, too short, or names CPUs that are not allowed.
Binding choose_binding(const BindRequest& request, const CpuTopology& topology, const std::vector<int64_t>& allowed,
                       int64_t quota);

// Binds this process (and the threads that it starts later). CommError with the system's reason.
void apply_binding(const Binding& binding);

// "0-3,8" from numbers in ascending order, and back. `what` names the list in errors.
std::string cpu_list_text(const std::vector<int64_t>& cpus);
std::vector<int64_t> parse_cpu_list(std::string_view text, std::string_view what);

}  // namespace welkin::launch
