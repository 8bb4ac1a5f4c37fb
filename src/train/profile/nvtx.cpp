// SPDX-License-Identifier: Apache-2.0
#include "train/profile/nvtx.h"

#include <dlfcn.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <exception>
#include <string>

namespace welkin::train {
namespace {

const torch::profiler::impl::ProfilerStubs& nvtx() { return *torch::profiler::impl::cudaStubs(); }

// libtorch_cpu needs the runtime library, so it is loaded; it counts no devices.
void call_runtime(const char* name) {
  if (!has_nvtx()) return;
  wait_for_gpu();
  using Function = int (*)();
  if (const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name))) function();
}

}  // namespace

bool has_nvtx() { return nvtx().enabled(); }

void wait_for_gpu() {
  if (has_nvtx()) nvtx().synchronize();
}

void NvtxSink::begin(std::string_view name) noexcept {
  try {
    nvtx().rangePush(std::string(name).c_str());
  } catch (const std::exception&) {  // a range that is not shown harms nothing
  }
}

void NvtxSink::end(std::string_view, observe::SpanClock::time_point) noexcept {
  try {
    nvtx().rangePop();
  } catch (const std::exception&) {
  }
}

void start_cuda_profiler() { call_runtime("cudaProfilerStart"); }
void stop_cuda_profiler() { call_runtime("cudaProfilerStop"); }

}  // namespace welkin::train
