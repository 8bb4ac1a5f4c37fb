// SPDX-License-Identifier: Apache-2.0
// The mode --memory: counts the bytes that every rank holds under the configured layout.
#include "apps/bench/bench.h"
#include "bench/memory/memory_bench.h"
#include "core/error.h"
#include "core/text.h"
#include "train/learn/registries.h"

namespace welkin::apps {

BenchResult bench_memory(const BenchRequest& request) {
  if (!request.device.is_cpu()) {
    throw ConfigError("bench", cat("tensors are counted on the CPU: device=", request.device.str()),
                      "Add --device cpu: what a rank holds does not depend on it, but for what kernels keep");
  }
  const bench::HeldMemory report = bench::run_memory_bench(request.config, request.application.registries, request.world);
  BenchResult result{.text = bench::held_memory_text(report)};
  bench::add_held_memory_json(result.json, report);
  return result;
}

}  // namespace welkin::apps
