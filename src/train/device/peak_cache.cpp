// SPDX-License-Identifier: Apache-2.0
#include "train/device/peak_cache.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kLargestCache = 1 << 20;
constexpr size_t kMostPeaks = 200;  // beyond it the oldest are dropped

json peak_json(const KeptPeak& peak) {
  const PeakConditions& on = peak.conditions;
  return {{"processor", on.processor}, {"instruction_set", on.instruction_set},
          {"gemm", on.gemm},           {"dtype", on.dtype},
          {"threads", on.threads},     {"gflops", peak.gflops},
          {"date", peak.date}};
}

KeptPeak parse_peak(const json& object) {
  return {.conditions = {.processor = object.at("processor").get<std::string>(),
                         .instruction_set = object.at("instruction_set").get<std::string>(),
                         .gemm = object.at("gemm").get<std::string>(),
                         .dtype = object.at("dtype").get<std::string>(),
                         .threads = object.at("threads").get<int64_t>()},
          .gflops = object.at("gflops").get<double>(),
          .date = object.at("date").get<std::string>()};
}

}  // namespace

std::vector<KeptPeak> PeakCache::peaks() const {
  std::vector<KeptPeak> found;
  try {
    for (const json& object : json::parse(read_file(file_, kLargestCache))) {
      KeptPeak peak = parse_peak(object);
      if (std::isfinite(peak.gflops) && peak.gflops > 0) found.push_back(std::move(peak));
    }
  } catch (const Error&) {
    return {};
  } catch (const json::exception&) {
    return {};
  }
  return found;
}

std::optional<KeptPeak> PeakCache::find(const PeakConditions& conditions) const {
  for (const KeptPeak& peak : peaks()) {
    if (peak.conditions == conditions) return peak;
  }
  return {};
}

void PeakCache::keep(const KeptPeak& peak) const {
  std::vector<KeptPeak> all = peaks();
  std::erase_if(all, [&](const KeptPeak& other) { return other.conditions == peak.conditions; });
  if (all.size() >= kMostPeaks) all.erase(all.begin());
  all.push_back(peak);
  json text = json::array();
  for (const KeptPeak& kept : all) text.push_back(peak_json(kept));
  make_folders(file_.parent_path());
  write_file_atomically(file_, text.dump(1) + "\n");
}

fs::path peak_file(const char* xdg_cache_home, const char* home) {
  const auto is_absolute = [](const char* path) { return path != nullptr && path[0] == '/'; };  // XDG ignores relative paths
  if (is_absolute(xdg_cache_home)) return fs::path(xdg_cache_home) / "welkin" / "peaks.json";
  if (is_absolute(home)) return fs::path(home) / ".cache" / "welkin" / "peaks.json";
  return {};
}

std::string described_processor(std::istream& cpuinfo) {
  std::map<std::string, std::string> first;  // for each key the first processor's value
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": "), tab = line.find_first_of("\t:");
    if (colon != std::string::npos) first.try_emplace(line.substr(0, tab), line.substr(colon + 2));
  }
  if (!first.contains("model name")) return "";
  if (!first.contains("cpu family") || !first.contains("model")) return first["model name"];
  return cat(first["model name"], " family ", first["cpu family"], " model ", first["model"]);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  if (std::string name = described_processor(file); !name.empty()) return name;
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

std::string date_today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &local);
  return text.data();
}

}  // namespace welkin::train
