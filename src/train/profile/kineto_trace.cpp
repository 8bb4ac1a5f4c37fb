// SPDX-License-Identifier: Apache-2.0
#include "train/profile/kineto_trace.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdlib>
#include <set>

#include "core/file.h"
#include "core/text.h"
#include "train/profile/nvtx.h"

namespace welkin::train {
namespace {

namespace kineto = torch::autograd::profiler;
namespace profiler = torch::profiler::impl;

// A stack, since spans nest.
std::vector<std::unique_ptr<at::RecordFunction>>& open_records() {
  thread_local std::vector<std::unique_ptr<at::RecordFunction>> records;
  return records;
}

std::set<profiler::ActivityType> activities(bool with_gpu) {
  if (with_gpu) return {profiler::ActivityType::CPU, profiler::ActivityType::CUDA};
  return {profiler::ActivityType::CPU};
}

profiler::ProfilerConfig all_threads() {
  profiler::ExperimentalConfig experimental;
  experimental.profile_all_threads = true;
  return profiler::ProfilerConfig(profiler::ProfilerState::KINETO,
                                  /*report_input_shapes=*/false,
                                  /*profile_memory=*/false,
                                  /*with_stack=*/false,
                                  /*with_flops=*/false,
                                  /*with_modules=*/false, experimental);
}

// Calls of operators and kernels; annotations (our spans) contain operators and are left out.
std::vector<OperatorCall> calls_of(const kineto::ProfilerResult& result) {
  std::vector<OperatorCall> calls;
  for (const kineto::KinetoEvent& event : result.events()) {
    if (event.scope() == static_cast<uint8_t>(at::RecordScope::USER_SCOPE) || event.isHiddenEvent()) continue;
    const bool on_gpu = event.deviceType() == c10::DeviceType::CUDA;
    const uint64_t lane = on_gpu ? static_cast<uint64_t>(event.deviceResourceId()) : event.startThreadId();
    calls.push_back(
        {.name = event.name(), .thread = lane, .begin_ns = event.startNs(), .end_ns = event.endNs(), .on_gpu = on_gpu});
  }
  return calls;
}

}  // namespace

KinetoTrace::KinetoTrace(bool with_gpu) : with_gpu_(with_gpu) {
  setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);  // else it complains about the missing driver on a CPU
  // CUPTI crashes if it is torn down between two traces while CUDA graphs are replayed; torch.profiler sets both, too.
  setenv("TEARDOWN_CUPTI", "0", /*overwrite=*/0);
  setenv("DISABLE_CUPTI_LAZY_REINIT", "1", /*overwrite=*/0);
  const profiler::ProfilerConfig config = all_threads();
  kineto::prepareProfiler(config, activities(with_gpu));
  kineto::enableProfiler(config, activities(with_gpu),
                         {at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE, at::RecordScope::BACKWARD_FUNCTION});
}

KinetoTrace::~KinetoTrace() {
  if (is_recording_) kineto::disableProfiler();
}

std::vector<OperatorCall> KinetoTrace::save(const std::filesystem::path& path) {
  is_recording_ = false;
  if (with_gpu_) wait_for_gpu();  // else kernels that have not ended are missing in the trace
  const auto result = kineto::disableProfiler();
  make_folders(path.parent_path());
  write_path_atomically(path, [&](const std::filesystem::path& aside) { result->save(aside.string()); });
  return calls_of(*result);
}

void KinetoSink::begin(std::string_view name) noexcept {
  if (std::this_thread::get_id() != thread_) return;
  auto& record = open_records().emplace_back(std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE));
  if (record->isActive()) record->before(std::string(name));
}

void KinetoSink::end(std::string_view, observe::SpanClock::time_point) noexcept {
  if (std::this_thread::get_id() == thread_ && !open_records().empty()) open_records().pop_back();
}

std::string trace_file_name(const std::string& host, int64_t process, int64_t milliseconds) {
  return cat(host, "_", process, ".", milliseconds, ".pt.trace.json");
}

}  // namespace welkin::train
