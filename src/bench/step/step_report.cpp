// SPDX-License-Identifier: Apache-2.0
#include "bench/step/step_report.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "core/process/host.h"
#include "core/text.h"

namespace welkin::bench {
namespace {

constexpr double kNear = 0.95;  // figures with a larger ratio have the same bottleneck

std::string bench_number(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string bytes_text(int64_t bytes) { return format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, bytes))); }

const char* precision_name(config::AmpMode mode) {
  if (mode == config::AmpMode::Bf16) return "bf16";
  return mode == config::AmpMode::Fp16 ? "fp16" : "fp32";
}

std::string phases_text(const std::vector<Phase>& phases) {
  double sum = 0;
  for (const Phase& phase : phases) sum += phase.seconds;
  std::vector<std::string> parts;
  for (const Phase& phase : phases) {
    const double share = sum > 0 ? 100 * phase.seconds / sum : 0;
    parts.push_back(cat(phase.name, " ", bench_number("%.3g", phase.seconds * 1e3), " ms (", bench_number("%.0f", share), " %)"));
  }
  return join(parts, ", ");
}

std::string device_text(const MemoryByKind& memory) {
  if (memory.device_peak == 0) return {};
  return cat("; on the GPU ", bytes_text(memory.device_before_model), " and ", bytes_text(memory.device_peak));
}

std::string memory_text(const MemoryByKind& memory) {
  return cat("weights ", bytes_text(memory.weights), ", gradients ", bytes_text(memory.gradients), ", optimizer ",
             bytes_text(memory.optimizer), ", activations and workspaces ", bytes_text(memory.activations), ", buffers ",
             bytes_text(memory.buffers), "; resident ", bytes_text(memory.resident_before_model), " before the model, ",
             bytes_text(memory.resident_peak), " at the peak", device_text(memory),
             memory.tensors_peak > 0 ? cat("; tensors in a step at most ", bytes_text(memory.tensors_peak)) : "");
}

// Bytes of the layers' operands, each counted once, in a step on this rank. The backward pass touches about twice as many.
double operand_bytes(const StepReport& report) { return 3 * report.cost.bytes(report.batch_samples); }

std::string notes_text(const StepReport& report) {
  std::string text;
  for (const std::string& note : report.notes) text += cat("    ", note, "\n");
  return text;
}

std::string bound_by_step(const std::vector<Phase>& phases) {
  const std::string_view phase = longest_phase(phases);
  return phase.empty() ? std::string("the step") : cat("the step: most of it is ", phase);
}

}  // namespace

std::string format_flops(double value) {
  if (value >= 1e12) return bench_number("%.3g TFLOP/s", value * 1e-12);
  return bench_number("%.3g GFLOP/s", value * 1e-9);
}

double flops_per_second(const StepReport& report) { return report.cost.train_flops * report.rates.median(); }

std::string bottleneck(const Figures& figures, const std::vector<Phase>& phases) {
  if (figures.nocomm && figures.synthetic && *figures.synthetic < kNear * *figures.nocomm) {
    const double share = 100 * (1 - *figures.synthetic / *figures.nocomm);
    return cat("communication: without it a step takes ", bench_number("%.0f", share), " % less");
  }
  if (!figures.io || !figures.synthetic) {
    if (figures.io) return "reading: nothing else was measured";
    if (longest_phase(phases) == "fetch") return "reading: the step waits for its samples";
    return bound_by_step(phases);
  }
  const double slower = std::min(*figures.io, *figures.synthetic);
  if (figures.full && *figures.full < kNear * slower) {
    return cat("reading and computing share the cores: together they reach ", bench_number("%.0f", 100 * *figures.full / slower),
               " % of the slower one alone");
  }
  if (*figures.io < *figures.synthetic) return "reading: it delivers less than the step can take";
  return bound_by_step(phases);
}

std::string step_text(const StepReport& report, const config::RunConfig& config, const Peaks& peaks) {
  const double flops = flops_per_second(report);
  const config::AmpMode mode = config.precision.amp_mode;
  std::string text = cat(upper(step_mode_name(report.mode)), ": ", rates_text(report.rates));
  if (flops > 0) {
    text += cat(", ", format_flops(flops), ", MFU ", bench_number("%.1f", 100 * flops / peaks.measured(mode)), " % of ",
                format_flops(peaks.measured(mode)), " measured (", precision_name(mode), ")");
  }
  return cat(text, "\n    a step: ", phases_text(report.phases),
             "\n    a sample: ", bench_number("%.4g", report.cost.train_flops * 1e-9), " GFLOP, ",
             bytes_text(report.sample_bytes), " of input and target; operands of a step ",
             bytes_text(static_cast<int64_t>(operand_bytes(report))), ", gradients sent ", bytes_text(report.exchanged_bytes),
             "\n    memory: ", memory_text(report.memory), "\n    first step done ",
             bench_number("%.3g", report.first_step_seconds), " s after the model was begun\n", notes_text(report));
}

void add_step_json(nlohmann::ordered_json& json, const StepReport& report, const config::RunConfig& config, const Peaks& peaks) {
  const std::string mode = step_mode_name(report.mode);
  const double flops = flops_per_second(report);
  json[mode + "_samples_per_s"] = report.rates.median();
  json[mode + "_samples_per_s_spread"] = report.rates.spread();
  json[mode + "_samples_per_s_min"] = report.rates.min();
  json[mode + "_samples_per_s_max"] = report.rates.max();
  json[mode + "_samples_per_s_windows"] = report.rates.windows;
  json[mode + "_flops_per_s"] = flops;
  json[mode + "_mfu"] = flops / peaks.measured(config.precision.amp_mode);
  json["precision"] = precision_name(config.precision.amp_mode);
  json["train_flops_per_sample"] = report.cost.train_flops;
  json["operand_bytes_per_step"] = operand_bytes(report);
  json["sample_bytes"] = report.sample_bytes;
  json["batch_samples"] = report.batch_samples;
  json["exchanged_bytes_per_step"] = report.exchanged_bytes;
  json["parameters"] = report.parameters;
  json["first_step_s"] = report.first_step_seconds;
  json["page_faults_per_step"] = report.page_faults_per_step;
  for (const Phase& phase : report.phases) json["phase_seconds"][std::string(phase.name)] = phase.seconds;
  const MemoryByKind& memory = report.memory;
  json["memory_bytes"] = {{"weights", memory.weights},
                          {"gradients", memory.gradients},
                          {"optimizer", memory.optimizer},
                          {"activations_and_workspaces", memory.activations},
                          {"buffers", memory.buffers},
                          {"resident_before_model", memory.resident_before_model},
                          {"resident_peak", memory.resident_peak}};
  json["resident_before_model_bytes"] = memory.resident_before_model;
  json["resident_peak_bytes"] = memory.resident_peak;
  if (memory.device_peak > 0) {
    json["memory_bytes"]["device_before_model"] = memory.device_before_model;
    json["peak_device_bytes"] = memory.device_peak;
  }
  if (memory.tensors_peak > 0) json["step_tensors_peak_bytes"] = memory.tensors_peak;
  json["step_s"] = report.step_seconds;
  if (!report.notes.empty()) json["notes"] = report.notes;
  if (report.predicted) {
    json["predicted_step_tensors_peak_bytes"] = report.predicted->peak_bytes;
    json["predicted_step_s"] = report.predicted->seconds;
  }
  // A stated target of the project: the peak without memory from before, weights, gradients and two states of 4 bytes each.
  json["resident_peak_less_before_and_16_bytes_per_parameter"] =
      memory.resident_peak - memory.resident_before_model - 16 * report.parameters;
}

std::string peaks_text(const Peaks& peaks) {
  std::string text = cat("machine: matmuls reach ", format_flops(peaks.fp32_flops), " in fp32 and ",
                         format_flops(peaks.bf16_flops), " in bf16, copies ", bench_number("%.3g", peaks.bytes * 1e-9), " GB/s");
  if (peaks.theoretical_fp32_flops > 0) {
    text += cat("; by clock and width ", format_flops(peaks.theoretical_fp32_flops), " and ",
                format_flops(peaks.theoretical_bf16_flops));
  }
  return text + "\n";
}

void add_peaks_json(nlohmann::ordered_json& json, const Peaks& peaks) {
  json["peak_fp32_flops_per_s"] = peaks.fp32_flops;
  json["peak_bf16_flops_per_s"] = peaks.bf16_flops;
  json["peak_bytes_per_s"] = peaks.bytes;
  json["theoretical_fp32_flops_per_s"] = peaks.theoretical_fp32_flops;
  json["theoretical_bf16_flops_per_s"] = peaks.theoretical_bf16_flops;
}

}  // namespace welkin::bench
