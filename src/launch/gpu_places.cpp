// SPDX-License-Identifier: Apache-2.0
#include "launch/gpu_places.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

struct Gpu {
  std::string address;  // "0000:3b:00.0": their order is that of the bus
  std::string uuid;     // "GPU-8932f937-..."; empty: not said
};

// A line of the driver's file: "GPU UUID:        GPU-8932f937-...".
std::string uuid_in(const fs::path& information) {
  std::ifstream file(information);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("GPU UUID:")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::string uuid;
    words >> uuid;
    return uuid;
  }
  return {};
}

std::vector<Gpu> all_gpus(const fs::path& root) {
  std::vector<Gpu> gpus;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", absent)) {
    gpus.push_back({.address = entry.path().filename().string(), .uuid = uuid_in(entry.path() / "information")});
  }
  std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.address < b.address; });
  return gpus;
}

// The GPU by its index, or by the beginning of its identifier, as CUDA takes it.
const Gpu* gpu_named(const std::vector<Gpu>& gpus, const std::string& name) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error == std::errc() && end == name.data() + name.size()) return index < gpus.size() ? &gpus[index] : nullptr;
  if (!name.starts_with("GPU-")) return nullptr;
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.uuid.starts_with(name); });
  return found == gpus.end() ? nullptr : &*found;
}

// The kernel says -1 where it does not know.
std::optional<int64_t> numa_node_of(const Gpu& gpu, const fs::path& root) {
  std::ifstream file(root / "sys/bus/pci/devices" / gpu.address / "numa_node");
  int64_t node = -1;
  if (!(file >> node) || node < 0) return {};
  return node;
}

}  // namespace

std::vector<int64_t> gpu_numa_nodes(const char* visible, const fs::path& root) {
  const std::vector<Gpu> gpus = all_gpus(root);
  std::vector<const Gpu*> shown;
  if (visible == nullptr) {
    for (const Gpu& gpu : gpus) shown.push_back(&gpu);
  } else {
    std::istringstream names(visible);
    for (std::string name; std::getline(names, name, ',');) shown.push_back(gpu_named(gpus, name));
  }
  std::vector<int64_t> nodes;
  for (const Gpu* gpu : shown) {
    const std::optional<int64_t> node = gpu == nullptr ? std::nullopt : numa_node_of(*gpu, root);
    if (!node) return {};
    nodes.push_back(*node);
  }
  return nodes;
}

}  // namespace welkin::launch
