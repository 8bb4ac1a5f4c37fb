// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/switches.h"

#include "config/schema/key.h"
#include "config/schema/value.h"
#include "core/text.h"

namespace welkin::config {
namespace {

std::vector<SwitchMeaning> speed_rows() {
  return {
      {"enable_jit", "on", "nothing to compile: operators are native code already, with the same results as off",
       "nothing to compile: operators are native code already, with the same results as off"},
      {"enable_jit", "off", "the same program", "the same program"},
      {"enable_apex", "on", "the optimizer is one fused update in any case; APEX is a CUDA library and has no part on a CPU",
       "the optimizer is one fused update in any case; APEX itself is not used"},
      {"enable_apex", "off", "the same program", "the same program"},
      {"enable_fused", "on", "the optimizer is one fused update in any case", "the optimizer is one fused update in any case"},
      {"enable_fused", "off", "the same program", "the same program"},
  };
}

std::vector<SwitchMeaning> precision_rows() {
  return {
      {"enable_amp", "on", "amp_mode fp16 where amp_mode is not given", "amp_mode fp16 where amp_mode is not given"},
      {"enable_amp", "off", "fp32", "fp32"},
      {"amp_mode", "none", "fp32, whatever the file says", "fp32, whatever the file says"},
      {"amp_mode", "fp16",
       "fp16 autocast with a loss scaler; few CPUs have matmuls of fp16, the others make them in fp32: bf16 is the mode for a "
       "CPU",
       "fp16 autocast with a loss scaler"},
      {"amp_mode", "bf16",
       "bf16 autocast, fp32 master weights, no scaler; fast where the CPU has AVX512-BF16 or AMX; without AVX-512 matmuls are "
       "made in fp32",
       "bf16 autocast, fp32 master weights, no scaler"},
  };
}

std::vector<SwitchMeaning> loader_rows() {
  return {
      {"data_loader_config", "lowmem", "crops are read from the HDF5 boxes when they are needed, by num_data_workers threads",
       "the same, then one copy to the GPU"},
      {"data_loader_config", "inmem", "both boxes are read whole into memory before the first step",
       "the same, then one copy to the GPU"},
      {"data_loader_config", "dali-lowmem",
       "crops are read from the npy files; there is no GPU part on a CPU: rotation runs on the CPU",
       "crops are read from the npy files; rotation runs on the GPU, DALI itself is not used"},
      {"data_loader_config", "synthetic", "standard-normal samples, no files", "standard-normal samples, no files"},
      {"data_loader_config", "pytorch", "time steps are read from the yearly HDF5 files by num_data_workers threads",
       "the same, then one copy to the GPU"},
      {"data_loader_config", "dali", "read like pytorch; there is no GPU part on a CPU: normalisation runs on the CPU",
       "read like pytorch; normalisation runs on the GPU, DALI itself is not used"},
  };
}

// Switches of the input pipeline. The first row of each is the slow baseline that the tutorials begin with.
std::vector<SwitchMeaning> feeding_rows() {
  return {
      {"num_data_workers", "0", "samples are read in the step's own thread, when the step asks for them",
       "samples are read in the step's own thread, when the step asks for them"},
      {"num_data_workers", "1 or more", "so many threads read ahead into a ring of reused buffers; the batches are the same",
       "the same, into page-locked buffers"},
      {"prefetch_depth", "1", "one batch is held ready", "one batch is held ready"},
      {"prefetch_depth", "2 or more", "so many batches are held ready, in so much more memory",
       "so many batches are held ready, in so much more memory"},
      {"persistent_workers", "off", "reading threads end with every epoch and nothing is read ahead across its end",
       "reading threads end with every epoch and nothing is read ahead across its end"},
      {"persistent_workers", "on", "reading threads live as long as the run and read ahead across the end of an epoch",
       "reading threads live as long as the run and read ahead across the end of an epoch"},
      {"pin_memory", "off", "no effect: there is no copy to a device", "plain host buffers: the driver copies twice"},
      {"pin_memory", "on", "no effect: there is no copy to a device", "page-locked host buffers"},
      {"non_blocking", "off", "no effect: there is no copy to a device", "the step waits for every copy"},
      {"non_blocking", "on", "no effect: there is no copy to a device", "copies overlap the step, on a stream of their own"},
      {"use_cache", "FOLDER", "train_path and val_path are read from that folder, where the user has put copies",
       "train_path and val_path are read from that folder, where the user has put copies"},
      {"stage", "FOLDER", "training files are copied to that folder first, once for all processes of the node, and read there",
       "training files are copied to that folder first, once for all processes of the node, and read there"},
      {"resident", "none", "samples are read from the files", "samples are read from the files"},
      {"resident", "host", "all values are read once and held in memory; crops are cut there",
       "all values are read once and held in host memory; crops are cut there and copied"},
      {"resident", "device", "there is no GPU, and its memory is the host's: the same as host",
       "all values are read once and held in the GPU's memory; crops are cut, turned and normalised there, no byte of them "
       "crosses "
       "the bus"},
  };
}

std::vector<SwitchMeaning> measuring_rows() {
  return {
      {"enable_benchy", "on", "the run measures and ends: IO, SYNTHETIC and FULL, as benchy does, with its lines and its JSON",
       "the run measures and ends: IO, SYNTHETIC and FULL, as benchy does, with its lines and its JSON"},
      {"enable_benchy", "off", "the same program", "the same program"},
      {"enable_manual_profiling", "on",
       "the tutorial's window (SC22: epoch index 3, SC21: 1; steps 0 to 59) as profile/timeline.svg and .json: NVTX needs a GPU",
       "the tutorials' NVTX ranges, and cudaProfilerStart and Stop around the tutorial's window (SC22: epoch index 3, SC21: 1; "
       "steps 0 to 59)"},
      {"enable_manual_profiling", "off", "the same program", "the same program"},
      {"noddp", "on", "no gradient exchange between processes: each trains its own weights, for measuring only",
       "no gradient exchange between processes: each trains its own weights, for measuring only"},
      {"noddp", "off", "gradients are averaged over the data-parallel processes",
       "gradients are averaged over the data-parallel processes"},
  };
}

std::string switch_value(const RunConfig& config, const Key& key) {
  if (is_switch(key)) return value_text(config, key) == "true" ? "on" : "off";
  return value_text(config, key);
}

// True for rows that a run does not mention: off, empty, or on by default; amp_mode covers enable_amp.
bool is_resting(const SwitchMeaning& row) {
  const bool on_by_default = row.name == "persistent_workers" || row.name == "pin_memory" || row.name == "non_blocking";
  if (on_by_default) return row.value == "on";
  return row.value == "off" || row.value == "none" || row.value == "0" || row.name == "enable_amp";
}

}  // namespace

const std::vector<SwitchMeaning>& switch_meanings() {
  static const std::vector<SwitchMeaning> rows = [] {
    std::vector<SwitchMeaning> all = speed_rows();
    for (const auto& more : {precision_rows(), loader_rows(), feeding_rows(), measuring_rows()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rows;
}

std::vector<std::string> switch_notes(const RunConfig& config, DeviceKind device) {
  std::vector<std::string> notes;
  for (const SwitchMeaning& row : switch_meanings()) {
    if (is_resting(row) || switch_value(config, *find_key(row.name)) != row.value) continue;
    notes.push_back(cat(row.name, " ", row.value, ": ", device == DeviceKind::Cpu ? row.cpu : row.gpu));
  }
  return notes;
}

std::string backend_note(const Resolved& resolved, DeviceKind device) {
  const auto with_origin = [&](const char* path) {
    const Key& key = key_at(path);
    const std::string text = value_text(resolved.config, key);
    const auto origin = resolved.origins.find(path);
    return cat(key.flat, " ",
               text == "true"    ? "on"
               : text == "false" ? "off"
                                 : text,
               " (", origin == resolved.origins.end() ? "default" : origin->second.text, ")");
  };
  return cat("Matmuls in fp32: ", with_origin("backend.tf32"), ", ", with_origin("backend.cudnn_enabled"), ", ",
             with_origin("backend.cudnn_benchmark"), ", ", with_origin("backend.cudnn_deterministic"),
             device == DeviceKind::Cpu ? "; no effect on a CPU" : "");
}

std::string switch_table_markdown() {
  std::string text = "| switch | value | on a CPU | on a GPU |\n| --- | --- | --- | --- |\n";
  for (const SwitchMeaning& row : switch_meanings())
    text += cat("| `", row.name, "` | ", row.value, " | ", row.cpu, " | ", row.gpu, " |\n");
  return text;
}

}  // namespace welkin::config
