// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/machine_findings.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/process/cgroup.h"
#include "core/process/host.h"
#include "core/text.h"
#include "launch/affinity.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

constexpr double kMostCores = 1e6;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "name : value" lines, the first of each name.
std::map<std::string, std::string> colon_lines(const fs::path& path) {
  std::map<std::string, std::string> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t name_end = line.find_last_not_of(" \t", colon - 1), begin = line.find_first_not_of(" \t", colon + 1);
    if (colon == 0 || name_end == std::string::npos || begin == std::string::npos) continue;
    values.emplace(line.substr(0, name_end + 1), line.substr(begin));
  }
  return values;
}

std::string value_of(const std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

uint64_t number_of(const std::string& text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Measured with our kernels and torch's: src/ops/base/instruction_support.h says on which processors.
Finding half_precision(const std::set<std::string>& flags, bool is_amd) {
  const bool has_tiles = flags.contains("amx_bf16"), has_dots = flags.contains("avx512_bf16");
  const bool pays = has_tiles || (has_dots && is_amd);
  return judged("bfloat16",
                has_tiles  ? "matrix tiles (AMX): bf16 pays"
                : pays     ? "fast dot products: bf16 pays"
                : has_dots ? "dot products no faster than float32's"
                           : "no instructions for it",
                !pays, Verdict::Doubtful, "Leave --amp_mode none on the CPUs of this machine; bf16 saves memory alone");
}

}  // namespace

Findings processor_findings(const fs::path& root) {
  const auto info = colon_lines(root / "proc/cpuinfo");
  std::istringstream words(value_of(info, "flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  std::string widest = "portable";
  if (flags.contains("avx2") && flags.contains("fma")) widest = "avx2";
  if (flags.contains("avx512bw") && flags.contains("avx512dq") && flags.contains("avx512vl")) widest = "avx512";
  const std::string name = value_of(info, "model name");
  Findings findings;
  findings.push_back(judged("processor", cat(name.empty() ? "of an unknown make" : name, "; kernels: ", widest),
                            widest == "portable", Verdict::Doubtful,
                            "Use a machine with AVX2: without, steps take several times as long"));
  findings.push_back(half_precision(flags, value_of(info, "vendor_id") == "AuthenticAMD"));
  const std::string governor = first_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty()) {
    findings.push_back(judged("frequency", cat("governor ", governor), governor == "powersave" && !flags.contains("hwp"),
                              Verdict::Doubtful, "Have the administrator set the governor to performance"));
  }
  return findings;
}

Findings core_findings(const fs::path& root) {
  const CpuTopology topology = read_topology();
  const std::vector<int64_t> allowed = allowed_cpus();
  const std::set<int64_t> mine(allowed.begin(), allowed.end());
  std::set<int64_t> nodes, all_nodes;
  std::set<std::pair<int64_t, int64_t>> cores;
  for (const Cpu& cpu : topology.cpus) {
    all_nodes.insert(cpu.numa_node);
    if (!mine.contains(cpu.number)) continue;
    nodes.insert(cpu.numa_node);
    cores.insert({cpu.package, cpu.core});
  }
  Findings findings;
  findings.push_back(judged(
      "cores", cat(allowed.size(), " of ", topology.cpus.size(), " CPUs (", cores.size(), " cores): ", cpu_list_text(allowed)),
      allowed.size() == 1 && topology.cpus.size() > 1, Verdict::Doubtful,
      "Ask the launcher for more: srun --cpus-per-task, mpirun --bind-to none"));
  findings.push_back(judged("NUMA", cat(nodes.size(), " of ", all_nodes.size(), " nodes"), nodes.size() > 1, Verdict::Doubtful,
                            "Start a process per node: welkin launch -n N binds each to its own (--bind auto)"));
  const auto quota = static_cast<uint64_t>(std::min(std::ceil(cgroup_limits(root).cores), kMostCores));
  if (quota > 0) {
    findings.push_back(judged("CPU quota", cat(quota, " cores by the cgroup"), quota < allowed.size(), Verdict::Doubtful,
                              "More threads than that wait for each other; Welkin counts them, other programs may not"));
  }
  return findings;
}

Findings memory_findings(const fs::path& root) {
  const auto info = colon_lines(root / "proc/meminfo");
  const auto bytes = [&](const char* name) { return number_of(value_of(info, name)) * 1024; };
  const uint64_t total = bytes("MemTotal"), available = bytes("MemAvailable"), limit = cgroup_limits(root).memory;
  Findings findings;
  findings.push_back(judged("memory", cat(format_bytes(available), " free of ", format_bytes(total)), available < total / 4,
                            Verdict::Doubtful, "Others use it: welkin bench --memory says what a run takes, before it runs"));
  if (limit < total) {
    findings.push_back({"memory limit", Verdict::Doubtful, cat(format_bytes(limit), " by the cgroup"),
                        "More ends the process without a word: ask the job for more, or give --memory_limit_gib"});
  }
  const std::string pages = first_line(root / "sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = pages.find('['), close = pages.find(']');
  const std::string mode = open < close && close != std::string::npos ? pages.substr(open + 1, close - open - 1) : "not there";
  findings.push_back(
      judged("huge pages", mode, mode != "always" && mode != "madvise", Verdict::Doubtful,
             "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled, as administrator: large tensors are touched faster"));
  return findings;
}

Findings limit_findings() {
  const auto limit = [](auto resource) {
    rlimit value{};
    return getrlimit(resource, &value) == 0 ? value.rlim_cur : RLIM_INFINITY;
  };
  const auto text = [](rlim_t bytes) { return bytes == RLIM_INFINITY ? std::string("unlimited") : format_bytes(bytes); };
  std::error_code ignored;
  const bool has_rdma = fs::exists("/sys/class/infiniband", ignored) && !fs::is_empty("/sys/class/infiniband", ignored);
  const rlim_t locked = limit(RLIMIT_MEMLOCK), addresses = limit(RLIMIT_AS), files = limit(RLIMIT_NOFILE);
  Findings findings;
  findings.push_back(judged("locked memory", text(locked), locked != RLIM_INFINITY && has_rdma, Verdict::Bad,
                            "InfiniBand pins memory: ulimit -l unlimited, or in the job's limits"));
  findings.push_back(judged("address space", text(addresses), addresses != RLIM_INFINITY, Verdict::Doubtful,
                            "Libraries and files are mapped, which counts here: ulimit -v unlimited"));
  findings.push_back(judged("open files", files == RLIM_INFINITY ? "unlimited" : std::to_string(files), files < 1024,
                            Verdict::Doubtful, "ulimit -n 4096"));
  return findings;
}

}  // namespace welkin::launch
