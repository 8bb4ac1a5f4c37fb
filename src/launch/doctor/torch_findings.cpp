// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/torch_findings.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "core/error.h"
#include "core/process/host.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "launch/batch/scheduler.h"
#include "launch/batch/shell_word.h"
#include "launch/torch_loader.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kCudaOfTorch = 13000;  // torch 2.11.0's CUDA is 13.0
constexpr int kMostDevices = 64;
constexpr double kSlowStartSeconds = 20;

// The few functions of the driver that are used. Their signatures have not changed since CUDA 4.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*memory)(size_t*, int) = nullptr;
  int (*reaches)(int*, int, int) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool open_driver(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr && find(library, "cuInit", driver.init) && find(library, "cuDriverGetVersion", driver.version) &&
         find(library, "cuDeviceGetCount", driver.count) && find(library, "cuDeviceGetName", driver.name) &&
         find(library, "cuDeviceTotalMem_v2", driver.memory) && find(library, "cuDeviceCanAccessPeer", driver.reaches);
}

std::string cuda_version(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

Finding driver_finding(const Driver& driver, int started) {
  int version = 0;
  driver.version(&version);
  const std::string found = cat("the driver speaks CUDA ", cuda_version(version), ", torch ", cuda_version(kCudaOfTorch));
  if (started == 803) {
    return {"driver", Verdict::Bad, cat(found, "; its library and its kernel module differ"),
            "Restart the machine, or the container with the driver of this one"};
  }
  if (started != 0)
    return {"driver", Verdict::Bad, cat(found, "; it does not start: CUDA error ", started), "nvidia-smi says more"};
  return judged("driver", found, version < kCudaOfTorch, Verdict::Bad,
                "Update the driver to 580 or newer, or hide the GPUs: CUDA_VISIBLE_DEVICES=");
}

Findings device_findings(const Driver& driver, int count) {
  Findings findings;
  for (int device = 0; device < count; ++device) {
    std::array<char, 128> name{};
    size_t bytes = 0;
    driver.name(name.data(), static_cast<int>(name.size()) - 1, device);
    driver.memory(&bytes, device);
    findings.push_back({cat("GPU ", device), Verdict::Good, cat(name.data(), ", ", format_bytes(bytes)), ""});
  }
  std::vector<std::string> apart;
  for (int from = 0; from < count; ++from) {
    for (int to = from + 1; to < count; ++to) {
      int reaches = 0;
      driver.reaches(&reaches, from, to);
      if (reaches == 0) apart.push_back(cat(from, "-", to));
    }
  }
  if (count > 1) {
    findings.push_back(
        judged("peer access", apart.empty() ? "each GPU reaches each" : cat("not between ", join(apart, ", ")), !apart.empty(),
               Verdict::Doubtful,
               "Exchanges go through the host's memory: nvidia-smi topo -m; in virtual machines ask for passed-through NVLink"));
  }
  return findings;
}

// Stderr is kept: its text counts where the program fails.
std::string version_command(const fs::path& program, const fs::path& package) {
  const std::string start =
      cat(shell_word(program.string()), " --torch ", shell_word(package.string()), " --bind off --version 2>&1; true");
  return cat("sh -c ", shell_word(start));
}

}  // namespace

Findings torch_findings(const TorchSearch& search, const fs::path& program) {
  try {
    const fs::path package = find_torch(search);
    const Stopwatch watch;
    const auto printed = output_of(version_command(program, package));
    const double taken_s = watch.seconds();
    if (!printed || !printed->starts_with("welkin ")) {
      return {{"torch", Verdict::Bad, cat(package.string(), " does not load: ", printed.value_or("")),
               "Install it again: python3 -m pip install torch==2.11.0"}};
    }
    return {judged("torch", cat(kTorchVersion, " in ", package.string(), ", starts in ", static_cast<int>(taken_s * 1000), " ms"),
                   taken_s > kSlowStartSeconds, Verdict::Doubtful,
                   "The file system is slow for many small reads: install torch on the node's own disk")};
  } catch (const ConfigError& error) {
    return {{"torch", Verdict::Bad, error.what(), "As it says"}};
  }
}

Findings gpu_findings(const fs::path& package) {
  if (hides_every_gpu(std::getenv("CUDA_VISIBLE_DEVICES"))) return {{"GPU", Verdict::Good, "hidden by CUDA_VISIBLE_DEVICES", ""}};
  if (!has_cuda_device()) return {{"GPU", Verdict::Good, "none: the CPUs compute", ""}};
  Driver driver;
  if (!open_driver(driver)) {
    return {{"driver", Verdict::Bad, "there is a device of NVIDIA's, and no libcuda.so.1",
             "In a container: hand the driver in (--nv, --gpus all)"}};
  }
  const int started = driver.init(0);
  Findings findings{driver_finding(driver, started)};
  int count = 0;
  if (started == 0 && driver.count(&count) == 0) {
    for (Finding& finding : device_findings(driver, count < kMostDevices ? count : kMostDevices))
      findings.push_back(std::move(finding));
  }
  std::error_code ignored;
  if (!package.empty() && !fs::exists(package / "lib/libtorch_cuda.so", ignored)) {
    findings.push_back(
        {"torch", Verdict::Bad, "a torch for CPUs beside GPUs", "python3 -m pip install torch==2.11.0, which has CUDA"});
  }
  return findings;
}

}  // namespace welkin::launch
