// SPDX-License-Identifier: Apache-2.0
#include "launch/torch_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

// `binding`: RTLD_NOW finds a symbol that is missing here, RTLD_LAZY when it is first called.
void* open_library(const fs::path& path, int binding, const char* remedy) {
  void* handle = dlopen(path.c_str(), binding | RTLD_GLOBAL);
  if (handle == nullptr)
    throw ConfigError("launcher", cat("a library cannot be loaded: file=", path.string(), ", reason=", dlerror()), remedy);
  return handle;
}

}  // namespace

void set_loading_environment() {
  // Spinning at barriers costs a scheduler tick per parallel region when processes share cores, up to 70 times the work itself.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "0", 0);
  // Large tensors on huge pages: a step's fresh gradients and activations cost one fault in 512, a seventh of a U-Net's step.
  setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
  // Streams that share one of the 8 queues of a GPU wait for each other. A rank has more streams than that, and a receive of
  // NCCL that waits for its message must not block the work that produces the message.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("KINETO_LOG_LEVEL", "5", 0);  // "gpuGetDeviceCount failed" on a machine without GPU is no news
}

bool hides_every_gpu(const char* visible) {
  return visible != nullptr && (*visible == '\0' || std::string_view(visible).starts_with("-1"));
}

bool has_cuda_device() {
  if (hides_every_gpu(std::getenv("CUDA_VISIBLE_DEVICES"))) return false;
  std::error_code ignored;
  return fs::exists("/dev/nvidiactl", ignored) || fs::exists("/dev/dxg", ignored);  // dxg: WSL
}

void load_torch(const fs::path& package, bool with_cuda) {
  constexpr const char* kRemedy =
      "Install torch with what it needs: `python3 -m pip install torch==2.11.0`; for a machine without GPU "
      "`python3 -m pip install --no-deps torch==2.11.0 nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96`; where that "
      "torch is to serve on a machine with one, hide it: "
      "CUDA_VISIBLE_DEVICES= welkin ...";
  // Most of the 31,000 functions that torch's libraries call by name are never called.
  open_library(package / "lib" / "libc10.so", RTLD_LAZY, kRemedy);
  open_library(package / "lib" / "libtorch_cpu.so", RTLD_LAZY, kRemedy);
  if (with_cuda) open_library(package / "lib" / "libtorch_cuda.so", RTLD_LAZY, kRemedy);
}

MainFunction load_welkin(const fs::path& folder, bool with_cuda) {
  constexpr const char* kRemedy = "Build or install Welkin again";
  std::error_code ignored;
  const bool in_build_folder = fs::exists(folder / "libwelkin.so", ignored);
  const fs::path libraries = in_build_folder ? folder : folder.parent_path() / "lib";
  void* library = open_library(libraries / "libwelkin.so", RTLD_NOW, kRemedy);
  void* entry = dlsym(library, "welkin_main");
  if (entry == nullptr) throw ConfigError("launcher", cat("libwelkin.so has no welkin_main: reason=", dlerror()), kRemedy);
  const fs::path kernels = libraries / "libwelkin_cuda.so";
  if (with_cuda && fs::exists(kernels, ignored)) open_library(kernels, RTLD_NOW, kRemedy);
  return reinterpret_cast<MainFunction>(entry);
}

}  // namespace welkin::launch
