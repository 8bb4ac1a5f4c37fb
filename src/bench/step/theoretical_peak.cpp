// SPDX-License-Identifier: Apache-2.0
#include "bench/step/theoretical_peak.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "core/text.h"

namespace welkin::bench {
namespace {

// Fused multiply-adds per clock of a multiprocessor, dense, from NVIDIA's data sheets: rate / (multiprocessors * clock * 2).
struct GpuRow {
  int64_t major, minor;
  double vector, tf32, half;
};
constexpr std::array kGpus{
    GpuRow{7, 0, 64, 0, 512},    GpuRow{7, 5, 64, 0, 512},      GpuRow{8, 0, 64, 512, 1024},    GpuRow{8, 6, 128, 256, 512},
    GpuRow{8, 9, 128, 256, 512}, GpuRow{9, 0, 128, 1024, 2048}, GpuRow{10, 0, 128, 2048, 4096}, GpuRow{12, 0, 128, 256, 512},
};

bool lists(std::string_view cpuinfo, std::string_view flag) {
  const size_t line = cpuinfo.find("\nflags");
  if (line == std::string_view::npos) return false;
  std::string words(cpuinfo.substr(line + 1, cpuinfo.find('\n', line + 1) - line - 1));
  words += ' ';
  return words.find(cat(" ", flag, " ")) != std::string::npos;
}

}  // namespace

double theoretical_flops(int64_t cores, double hertz, int64_t lanes) {
  constexpr double kPerLaneAndCycle = 4;  // two units, a multiply and an add each
  return static_cast<double>(cores) * hertz * static_cast<double>(lanes) * kPerLaneAndCycle;
}

double clock_hertz(std::string_view cpuinfo) {
  double fastest = 0;
  constexpr std::string_view kName = "cpu MHz";
  for (size_t at = cpuinfo.find(kName); at != std::string_view::npos; at = cpuinfo.find(kName, at + 1)) {
    const size_t colon = cpuinfo.find(':', at);
    if (colon == std::string_view::npos) break;
    fastest = std::max(fastest, std::strtod(std::string(cpuinfo.substr(colon + 1, 32)).c_str(), nullptr));
  }
  return fastest * 1e6;
}

double bf16_width(std::string_view cpuinfo) {
  // AMX: 16 x 16 sums of 32 products each in 16 cycles, against 64 FLOP a cycle of two AVX-512 units.
  if (lists(cpuinfo, "amx_bf16")) return 32.0 * 16 * 16 * 2 / 16 / 64;
  return lists(cpuinfo, "avx512_bf16") ? 2 : 1;
}

double float32_width(double bf16_width, int64_t parts) {
  if (parts == 0) return 1;
  return parts == 1 ? bf16_width : std::max(1.0, bf16_width / 3);
}

double theoretical_gpu_flops(const GpuFacts& facts, GpuUnits units) {
  const auto row =
      std::ranges::find_if(kGpus, [&](const GpuRow& known) { return known.major == facts.major && known.minor == facts.minor; });
  if (row == kGpus.end()) return 0;
  const double tf32 = row->tf32 > 0 ? row->tf32 : row->vector;  // before Ampere there is no TF32
  const double per_clock = units == GpuUnits::Half ? row->half : units == GpuUnits::Tf32 ? tf32 : row->vector;
  return static_cast<double>(facts.multiprocessors) * facts.hertz * per_clock * 2;
}

GpuFacts gpu_facts(int64_t index) {
  using Attribute = int (*)(int* value, int attribute, int device);
  const auto attribute = reinterpret_cast<Attribute>(dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  // Their numbers are part of the runtime's interface (driver_types.h): ClockRate in kHz, MultiProcessorCount,
  // ComputeCapabilityMajor, ComputeCapabilityMinor.
  const auto read = [&](int number) {
    int value = 0;
    const bool is_read = attribute != nullptr && attribute(&value, number, static_cast<int>(index)) == 0;
    return is_read ? value : 0;
  };
  return {.multiprocessors = read(16), .hertz = 1e3 * read(13), .major = read(75), .minor = read(76)};
}

}  // namespace welkin::bench
