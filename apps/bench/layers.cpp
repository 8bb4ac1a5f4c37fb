// SPDX-License-Identifier: Apache-2.0
// The mode --layers: compares each layer of a step with the machine's roofline.
#include "bench/step/layers.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/bench/bench.h"
#include "bench/step/step_bench.h"
#include "bench/step/step_report.h"
#include "core/error.h"
#include "core/text.h"
#include "train/learn/registries.h"

namespace welkin::apps {

namespace {

std::string milliseconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g ms", seconds * 1e3);
  return text.data();
}

}  // namespace

BenchResult bench_layers(const BenchRequest& request) {
  if (request.config.parallel.model_size() > 1) {
    throw ConfigError(
        "bench",
        "the costs of layers are those of whole layers: tensor_parallel, context_parallel, spatial or pipeline_parallel > 1",
        "Take --layers without them");
  }
  const bench::Peaks peaks = peaks_of_machine(request);
  const bench::StepBenchContext context{
      .registries = request.application.registries, .world = request.world, .device = request.device, .windows = request.windows};
  const bench::StepReport plain = bench::run_step_bench(request.config, bench::StepMode::Synthetic, context);
  if (plain.cost.layers.empty()) {
    throw ConfigError("bench", cat("the model does not say what its layers cost: model=", request.config.model.model),
                      "Give its registry entry a cost with layers (src/model/base/model_cost.h)");
  }
  bench::LayerTimer timer;
  bench::StepBenchContext timed = context;
  timed.layers = &timer;
  const bench::StepReport apart = bench::run_step_bench(request.config, bench::StepMode::Synthetic, timed);
  const config::AmpMode mode = request.config.precision.amp_mode;
  const double peak = peaks.measured(mode), theory = peaks.theoretical(mode);
  const auto rows = bench::layer_rows(apart.cost, apart.layers, apart.batch_samples, mode == config::AmpMode::None ? 4 : 2);
  BenchResult result{.text = bench::peaks_text(peaks), .json = {}};
  result.text += bench::layers_text(rows, peaks, mode);
  result.text += cat("a step takes ", milliseconds_text(apart.step_seconds), " while its layers are timed, ",
                     milliseconds_text(plain.step_seconds), " otherwise\n");
  for (const bench::LayerRow& row : rows) {
    const double roof = bench::attainable_flops(row.intensity(), peak, peaks.bytes);
    result.json["layers"].push_back({{"name", row.name},
                                     {"count", row.count},
                                     {"flops", row.flops},
                                     {"bytes", row.bytes},
                                     {"intensity", row.intensity()},
                                     {"bound", roof < peak ? "memory" : "compute"},
                                     {"attainable_flops_per_s", roof},
                                     {"forward_seconds", row.seconds.forward},
                                     {"backward_seconds", row.seconds.backward},
                                     {"flops_per_s", row.flops_per_second()},
                                     {"mfu", row.flops_per_second() / peak},
                                     {"mfu_theoretical", theory > 0 ? row.flops_per_second() / theory : 0}});
  }
  result.json["step_seconds"] = plain.step_seconds;
  result.json["step_seconds_timed"] = apart.step_seconds;
  bench::add_peaks_json(result.json, peaks);
  return result;
}

}  // namespace welkin::apps
