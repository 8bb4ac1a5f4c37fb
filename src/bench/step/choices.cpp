// SPDX-License-Identifier: Apache-2.0
#include "bench/step/choices.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string_view>

#include "config/schema/batch_plan.h"
#include "core/process/host.h"
#include "ops/base/instruction_set.h"
#include "ops/gemm/gemm_provider.h"

namespace welkin::bench {
namespace {

using config::AmpMode;
using config::DeviceKind;

// The meaning of a switch on this device, from the table in config/resolve/switches.h.
std::string meaning_of(std::string_view name, DeviceKind device) {
  for (const config::SwitchMeaning& row : config::switch_meanings()) {
    if (row.name == name && row.value == "on") return std::string(device == DeviceKind::Cpu ? row.cpu : row.gpu);
  }
  return {};
}

// True for switches without effect: their rows say so in these words.
bool changes_nothing(std::string_view meaning) {
  return meaning.starts_with("no effect") || meaning.find("in any case") != std::string_view::npos ||
         meaning.starts_with("nothing to compile");
}

Rung switch_rung(std::string name, KeyValues settings, std::string_view of_switch, DeviceKind device) {
  Rung rung{.name = std::move(name), .settings = std::move(settings), .note = meaning_of(of_switch, device)};
  rung.is_measured = !changes_nothing(rung.note);
  return rung;
}

Rung graph_rung(DeviceKind device) {
  if (device == DeviceKind::Cuda) return {.name = "graphs", .settings = {{"cuda_graph", "true"}}};
  return {.name = "graphs", .settings = {}, .note = "no effect: a CPU has no launches to save", .is_measured = false};
}

std::string_view name_of_switch(bool value) { return value ? "true" : "false"; }

std::vector<std::string> halves(int64_t most, size_t how_many) {
  std::vector<std::string> values;
  for (int64_t value = most; value > 0 && values.size() < how_many; value /= 2) values.push_back(std::to_string(value));
  return values;
}

class ChoiceList {
 public:
  void add(std::string key, std::vector<std::string> values, std::string_view present) {
    std::erase(values, present);
    if (!values.empty()) list_.push_back({std::move(key), std::move(values)});
  }
  void add_switch(std::string key, bool present) { add(std::move(key), {"true", "false"}, name_of_switch(present)); }
  std::vector<Choice> take() { return std::move(list_); }

 private:
  std::vector<Choice> list_;
};

void add_choices_of_gpu(ChoiceList& list, const config::RunConfig& config, const PresentValues& present) {
  const config::BackendConfig& backend = config.backend;
  list.add_switch("backend.cuda_graph", backend.cuda_graph);
  if (config.precision.amp_mode == AmpMode::None) list.add("backend.tf32", {"on", "off"}, name_of(backend.tf32));
  if (!present.has_convolutions) return;
  list.add_switch("backend.channels_last", backend.channels_last);
  list.add_switch("backend.cudnn_benchmark", backend.cudnn_benchmark);
}

void add_choices_of_cpu(ChoiceList& list, const config::RunConfig& config, const PresentValues& present) {
  list.add("backend.gemm", {"mkl", "onednn"}, present.gemm);
  list.add("backend.instruction_set", present.instruction_sets, present.instruction_set);
  const bool has_tiles = std::ranges::find(present.instruction_sets, "amx") != present.instruction_sets.end();
  if (config.precision.amp_mode == AmpMode::None && has_tiles) {
    list.add("backend.float32_matmul_precision", {"highest", "high", "medium"}, name_of(config.backend.float32_matmul_precision));
  }
  list.add("threads", halves(present.cores, 16), std::to_string(present.threads));
}

}  // namespace

std::vector<Rung> ladder_rungs(const config::RunConfig& config, DeviceKind device) {
  const int64_t threads = config.data.num_data_workers > 0 ? config.data.num_data_workers : 4;
  const bool is_half = config.precision.amp_mode == AmpMode::Fp16;
  return {
      {.name = "baseline",
       .settings = {{"num_data_workers", "0"},
                    {"prefetch_depth", "1"},
                    {"persistent_workers", "false"},
                    {"pin_memory", "false"},
                    {"non_blocking", "false"},
                    {"amp_mode", "none"},
                    {"enable_apex", "false"},
                    {"enable_fused", "false"},
                    {"enable_jit", "false"},
                    {"cuda_graph", "false"}}},
      {.name = "reading threads",
       .settings = {{"num_data_workers", std::to_string(threads)}, {"prefetch_depth", "2"}, {"persistent_workers", "true"}}},
      switch_rung("device pipeline", {{"pin_memory", "true"}, {"non_blocking", "true"}}, "pin_memory", device),
      {.name = "mixed precision", .settings = {{"amp_mode", is_half ? "fp16" : "bf16"}}},
      switch_rung("fused optimizer", {{"enable_apex", "true"}, {"enable_fused", "true"}}, "enable_fused", device),
      switch_rung("fused operators", {{"enable_jit", "true"}}, "enable_jit", device),
      graph_rung(device),
  };
}

PresentValues present_values(const config::RunConfig& config, int64_t world_size, bool has_convolutions) {
  const config::ParallelConfig& parallel = config.parallel;
  const int64_t replicas = std::max<int64_t>(1, world_size / parallel.model_size());
  PresentValues present{.local_batch = std::max<int64_t>(1, config.loop.global_batch_size / replicas),
                        .cores = usable_cores(),
                        .threads = at::get_num_threads(),
                        .has_convolutions = has_convolutions,
                        .gemm = std::string(ops::name_of(ops::gemm_provider())),
                        .instruction_set = std::string(ops::name_of(ops::instruction_set())),
                        .instruction_sets = {}};
  using Set = ops::InstructionSet;
  for (const Set set : {Set::Portable, Set::Avx2, Set::Avx512, Set::Amx}) {
    if (ops::is_supported(set)) present.instruction_sets.emplace_back(ops::name_of(set));
  }
  return present;
}

std::vector<Choice> switch_choices(const config::RunConfig& config, DeviceKind device, const PresentValues& present, bool reads) {
  ChoiceList list;
  const bool is_cpu = device == DeviceKind::Cpu;
  list.add("amp_mode", is_cpu ? std::vector<std::string>{"none", "bf16"} : std::vector<std::string>{"none", "bf16", "fp16"},
           name_of(config.precision.amp_mode));
  const config::BatchPlan batch = config::batch_plan(config);
  if (batch.units == 0) {
    list.add("micro_batch_size", halves(present.local_batch, 4), std::to_string(std::min(batch.micro, present.local_batch)));
  }
  is_cpu ? add_choices_of_cpu(list, config, present) : add_choices_of_gpu(list, config, present);
  if (!reads) return list.take();
  std::vector<std::string> readers = halves(present.cores, 4);
  readers.insert(readers.begin(), "0");
  list.add("num_data_workers", readers, std::to_string(config.data.num_data_workers));
  list.add("resident", is_cpu ? std::vector<std::string>{"none", "host"} : std::vector<std::string>{"none", "host", "device"},
           name_of(config.data.resident));
  return list.take();
}

}  // namespace welkin::bench
