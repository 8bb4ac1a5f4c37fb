// SPDX-License-Identifier: Apache-2.0
#include "launch/affinity.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostCpus = 16384;
constexpr const char* kListRemedy =
    "Give CPUs per local rank, ranks joined by ':', for instance --bind 0-3:4-7; or --bind auto, off";

[[noreturn]] void refuse_list(std::string_view what, std::string_view text) {
  throw ConfigError("launch", cat("the list of CPUs cannot be read: ", what, "=", text), kListRemedy);
}

int64_t cpu_number(std::string_view digits, std::string_view what, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
  if (!whole || value < 0 || value >= kMostCpus) refuse_list(what, text);
  return value;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// A small file under /sys; empty when absent.
std::string read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int64_t read_number(const fs::path& path) {
  const std::string line = read_line(path);
  int64_t value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  return value;
}

std::vector<int64_t> numa_nodes_of(size_t num_cpus) {
  std::vector<int64_t> node_of(num_cpus, 0);
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", absent)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("node") || name.size() < 5 || name[4] < '0' || name[4] > '9') continue;
    const std::string cpus = read_line(entry.path() / "cpulist");
    if (cpus.empty()) continue;
    for (const int64_t cpu : parse_cpu_list(cpus, "cpulist")) {
      if (cpu < static_cast<int64_t>(num_cpus)) node_of[static_cast<size_t>(cpu)] = cpu_number(name.substr(4), "node", name);
    }
  }
  return node_of;
}

// The allowed CPUs in the order of the topology.
std::vector<Cpu> usable(const CpuTopology& topology, const std::vector<int64_t>& allowed) {
  std::vector<Cpu> cpus;
  for (const Cpu& cpu : topology.cpus) {
    if (std::binary_search(allowed.begin(), allowed.end(), cpu.number)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string numa_text(const CpuTopology& topology, const std::vector<int64_t>& chosen) {
  std::set<int64_t> nodes;
  for (const Cpu& cpu : topology.cpus) {
    if (std::binary_search(chosen.begin(), chosen.end(), cpu.number)) nodes.insert(cpu.numa_node);
  }
  return cat("NUMA node ", join(nodes, ","));
}

Binding bind_by_list(const BindRequest& request, const CpuTopology& topology, const std::vector<int64_t>& allowed) {
  const auto parts = split_at(request.mode, ':');
  if (static_cast<int64_t>(parts.size()) < request.local_size) {
    throw ConfigError("launch",
                      cat("the list has no CPUs for some ranks: bind=", request.mode, ", lists=", parts.size(),
                          ", processes of the node=", request.local_size),
                      kListRemedy);
  }
  Binding binding;
  binding.cpus = parse_cpu_list(parts[static_cast<size_t>(request.local_rank)], "bind");
  for (const int64_t cpu : binding.cpus) {
    if (std::binary_search(allowed.begin(), allowed.end(), cpu)) continue;
    throw ConfigError(
        "launch",
        cat("this process may not use that CPU: bind=", request.mode, ", cpu=", cpu, ", allowed=", cpu_list_text(allowed)),
        kListRemedy);
  }
  binding.threads = static_cast<int64_t>(binding.cpus.size());
  binding.reason = cat("list: cpus ", cpu_list_text(binding.cpus), ", ", numa_text(topology, binding.cpus));
  return binding;
}

// Number of this rank's share. All cores are handed out, also where a NUMA node has none of the GPUs.
int64_t share_number(const BindRequest& request) {
  const auto num = static_cast<size_t>(request.local_size);
  if (request.gpu_nodes.size() < num) return request.local_rank;
  const auto own = static_cast<size_t>(request.local_rank);
  int64_t before = 0;
  for (size_t rank = 0; rank < num; ++rank) {
    before += std::tuple(request.gpu_nodes[rank], rank) < std::tuple(request.gpu_nodes[own], own) ? 1 : 0;
  }
  return before;
}

// A core's hardware threads stay together: shares are cut between cores.
std::vector<int64_t> share_of(const std::vector<Cpu>& cpus, const BindRequest& request) {
  std::vector<std::vector<int64_t>> cores;
  for (size_t i = 0; i < cpus.size(); ++i) {
    const bool same = i > 0 && cpus[i].core == cpus[i - 1].core && cpus[i].package == cpus[i - 1].package &&
                      cpus[i].numa_node == cpus[i - 1].numa_node;
    if (!same) cores.emplace_back();
    cores.back().push_back(cpus[i].number);
  }
  const auto share_cores = static_cast<int64_t>(cores.size());
  const int64_t share = share_number(request);
  std::vector<int64_t> chosen;
  if (share_cores >= request.local_size) {
    for (int64_t i = share_cores * share / request.local_size; i < share_cores * (share + 1) / request.local_size; ++i) {
      const auto& core = cores[static_cast<size_t>(i)];
      chosen.insert(chosen.end(), core.begin(), core.end());
    }
  } else {
    const auto num = static_cast<int64_t>(cpus.size());
    for (int64_t i = num * share / request.local_size; i < num * (share + 1) / request.local_size; ++i) {
      chosen.push_back(cpus[static_cast<size_t>(i)].number);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

std::string cpu_list_text(const std::vector<int64_t>& cpus) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    ranges.push_back(last == i ? cat(cpus[i]) : cat(cpus[i], "-", cpus[last]));
    i = last + 1;
  }
  return join(ranges, ",");
}

std::vector<int64_t> parse_cpu_list(std::string_view text, std::string_view what) {
  std::set<int64_t> cpus;
  for (const std::string_view range : split_at(text, ',')) {
    const size_t dash = range.find('-');
    const int64_t first = cpu_number(range.substr(0, dash), what, text);
    const int64_t last = dash == std::string_view::npos ? first : cpu_number(range.substr(dash + 1), what, text);
    if (last < first) refuse_list(what, text);
    for (int64_t cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return {cpus.begin(), cpus.end()};
}

CpuTopology read_topology() {
  const fs::path root = "/sys/devices/system/cpu";
  const std::string online = read_line(root / "online");
  CpuTopology topology;
  const std::vector<int64_t> numbers = online.empty() ? allowed_cpus() : parse_cpu_list(online, "online");
  const auto nodes = numa_nodes_of(numbers.empty() ? 0 : static_cast<size_t>(numbers.back()) + 1);
  for (const int64_t number : numbers) {
    const fs::path cpu = root / cat("cpu", number) / "topology";
    topology.cpus.push_back({.number = number,
                             .numa_node = nodes[static_cast<size_t>(number)],
                             .core = fs::exists(cpu / "core_id") ? read_number(cpu / "core_id") : number,
                             .package = read_number(cpu / "physical_package_id")});
  }
  const auto place = [](const Cpu& cpu) { return std::tuple(cpu.numa_node, cpu.package, cpu.core, cpu.number); };
  std::sort(topology.cpus.begin(), topology.cpus.end(), [&](const Cpu& a, const Cpu& b) { return place(a) < place(b); });
  return topology;
}

std::vector<int64_t> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int64_t> cpus;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

Binding choose_binding(const BindRequest& request, const CpuTopology& topology, const std::vector<int64_t>& allowed,
                       int64_t quota) {
  const auto num_allowed = static_cast<int64_t>(allowed.size());
  const int64_t cores = std::max<int64_t>(1, std::min(quota, num_allowed));
  const bool narrowed = num_allowed < static_cast<int64_t>(topology.cpus.size());
  const int64_t even = std::max<int64_t>(1, cores / request.local_size);
  if (request.mode == "off") return {{}, even, cat("off: any of cpus ", cpu_list_text(allowed))};
  if (request.mode != "auto") return bind_by_list(request, topology, allowed);
  if (request.local_size == 1) return {{}, cores, cat("auto: alone on cpus ", cpu_list_text(allowed))};
  if (narrowed && !request.shares_mask) return {{}, cores, cat("auto: the launcher chose cpus ", cpu_list_text(allowed))};
  if (cores < request.local_size) {
    return {{}, 1, cat("auto: not bound, ", request.local_size, " processes share ", cores, " cores")};
  }
  Binding binding;
  binding.cpus = share_of(usable(topology, allowed), request);
  binding.threads = std::min(even, static_cast<int64_t>(binding.cpus.size()));
  binding.reason = cat("auto: cpus ", cpu_list_text(binding.cpus), ", ", numa_text(topology, binding.cpus));
  if (static_cast<int64_t>(request.gpu_nodes.size()) >= request.local_size) {
    binding.reason += cat("; its GPU sits at NUMA node ", request.gpu_nodes[static_cast<size_t>(request.local_rank)]);
  }
  return binding;
}

void apply_binding(const Binding& binding) {
  if (binding.cpus.empty()) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int64_t cpu : binding.cpus) CPU_SET(static_cast<size_t>(cpu), &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) == 0) return;
  throw CommError("launch", cat("cannot bind to cpus ", cpu_list_text(binding.cpus), ": reason=", std::strerror(errno)),
                  "Take --bind off");
}

}  // namespace welkin::launch
