// SPDX-License-Identifier: Apache-2.0
// Each layer's share of a step: counted cost, measured time, and the machine's bound. Times are taken at the layers' sites, so
// layers run one by one, without the fusion across layers of an unwrapped model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/step/peaks.h"
#include "bench/step/phases.h"
#include "model/base/model.h"
#include "model/base/model_cost.h"
#include "observe/timeline/span.h"

namespace welkin::bench {

// Install it before the first forward pass. As a sink of the step's tracer it closes open layers at the end of span "backward".
class LayerTimer : public observe::SpanSink {
 public:
  LayerTimer();
  ~LayerTimer() override;

  // Times the sites of these names only.
  void install(model::Model& model, const std::vector<std::string>& names);
  void begin(std::string_view /*name*/) noexcept override {}
  void end(std::string_view name, observe::SpanClock::time_point began) noexcept override;

  void clear();
  // Average times in the order of the names, for the number of steps since clear().
  std::vector<LayerSeconds> per_step(int64_t steps) const;

 private:
  struct State;  // wrappers may live longer than the timer
  std::shared_ptr<State> state_;
};

// A row of the table: one step on this rank. Layers whose names differ only by a number share a row.
struct LayerRow {
  std::string name;  // "blocks.*.attn.q"
  int64_t count = 1;
  double flops = 0;  // forward and backward
  double bytes = 0;  // operands, forward and twice as much backward
  LayerSeconds seconds;

  double intensity() const { return bytes > 0 ? flops / bytes : 0; }  // FLOP per byte
  double flops_per_second() const;
};

// The roofline's bound: the smaller of the peak and intensity times bandwidth.
double attainable_flops(double intensity, double peak_flops, double bytes_per_second);

// `seconds`: of one step, one entry per layer of `cost`. `element_bytes`: of an activation in the precision of the run.
std::vector<LayerRow> layer_rows(const model::ModelCost& cost, const std::vector<LayerSeconds>& seconds, int64_t batch,
                                 double element_bytes);

// A table: FLOPs, bytes, intensity, the bound, times, and shares of the mode's measured and theoretical peak and of the roof.
std::string layers_text(const std::vector<LayerRow>& rows, const Peaks& peaks, config::AmpMode mode);

}  // namespace welkin::bench
