// SPDX-License-Identifier: Apache-2.0
#include "bench/step/layers.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/alias.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "observe/log/table.h"
#include "train/device/device.h"

namespace welkin::bench {

using LayerClock = observe::SpanClock;

struct LayerTimer::State {
  std::vector<LayerSeconds> seconds;
  std::optional<size_t> open;  // the layer whose backward pass is running
  LayerClock::time_point opened;

  void close(LayerClock::time_point now) {
    if (!open) return;
    seconds[*open].backward += std::chrono::duration<double>(now - opened).count();
    open.reset();
  }
  void begin_backward(size_t layer) {
    const auto now = LayerClock::now();
    close(now);
    open = layer;
    opened = now;
  }
  void end_backward(size_t layer) {
    if (open == layer) close(LayerClock::now());
  }
};

LayerTimer::LayerTimer() : state_(std::make_shared<State>()) {}
LayerTimer::~LayerTimer() = default;

namespace {

// Adds a graph node whose gradient hook fires for this layer alone.
at::Tensor marked_input(const at::Tensor& value, std::function<void()> done) {
  if (!value.requires_grad()) return value;
  at::Tensor own = at::alias(value);
  own.register_hook([done = std::move(done)](const at::Tensor& gradient) {
    train::wait_for_stream(gradient.device());
    done();
  });
  return own;
}

}  // namespace

void LayerTimer::install(model::Model& model, const std::vector<std::string>& names) {
  state_->seconds.assign(names.size(), {});
  for (model::Site* site : model.sites()) {
    const auto found = std::ranges::find(names, site->name());
    if (found == names.end()) continue;
    const auto layer = static_cast<size_t>(found - names.begin());
    site->install([state = state_, layer](model::Tensors in, const model::Body& body) {
      for (at::Tensor& value : in) value = marked_input(value, [state, layer] { state->end_backward(layer); });
      const auto began = LayerClock::now();
      model::Tensors out = body(std::move(in));
      train::wait_for_stream(out.front().device());
      state->seconds[layer].forward += std::chrono::duration<double>(LayerClock::now() - began).count();
      for (at::Tensor& value : out) {
        if (value.requires_grad()) {
          value.register_hook([state, layer](const at::Tensor& gradient) {
            train::wait_for_stream(gradient.device());
            state->begin_backward(layer);
          });
        }
      }
      return out;
    });
  }
}

void LayerTimer::end(std::string_view name, observe::SpanClock::time_point /*began*/) noexcept {
  if (name == "backward") state_->close(LayerClock::now());
}

void LayerTimer::clear() {
  for (LayerSeconds& seconds : state_->seconds) seconds = {};
  state_->open.reset();
}

std::vector<LayerSeconds> LayerTimer::per_step(int64_t steps) const {
  std::vector<LayerSeconds> means = state_->seconds;
  const double each = steps > 0 ? 1 / static_cast<double>(steps) : 0;
  for (LayerSeconds& mean : means) mean.forward *= each, mean.backward *= each;
  return means;
}

double LayerRow::flops_per_second() const {
  const double all = seconds.forward + seconds.backward;
  return all > 0 ? flops / all : 0;
}

double attainable_flops(double intensity, double peak_flops, double bytes_per_second) {
  return std::min(peak_flops, intensity * bytes_per_second);
}

namespace {

// "blocks.11.attn.q" -> "blocks.*.attn.q".
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (size_t at = 0; at < name.size();) {
    const size_t dot = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, dot - at);
    const bool is_number = std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (at > 0) pattern += '.';
    pattern += is_number ? "*" : part;
    at = dot + 1;
  }
  return pattern;
}

std::string layer_number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// "-" where no time was measured: a layer whose name is not a site's.
std::string share_of(double value, double whole) {
  return whole > 0 && value > 0 ? layer_number("%.1f", 100 * value / whole) : "-";
}
std::string taken(double value, double factor) { return value > 0 ? layer_number("%.3g", value * factor) : "-"; }

}  // namespace

std::vector<LayerRow> layer_rows(const model::ModelCost& cost, const std::vector<LayerSeconds>& seconds, int64_t batch,
                                 double element_bytes) {
  std::vector<LayerRow> rows;
  for (size_t i = 0; i < cost.layers.size(); ++i) {
    const model::LayerCost& layer = cost.layers[i];
    const std::string name = pattern_of(layer.name);
    auto row = std::ranges::find(rows, name, &LayerRow::name);
    if (row == rows.end()) {
      rows.push_back({.name = name, .count = 0, .seconds = {}});
      row = rows.end() - 1;
    }
    ++row->count;
    row->flops += layer.train_flops * static_cast<double>(batch);
    row->bytes += 3 * layer.bytes(batch) * element_bytes / model::kFloatBytes;
    row->seconds.forward += seconds.at(i).forward;
    row->seconds.backward += seconds.at(i).backward;
  }
  return rows;
}

std::string layers_text(const std::vector<LayerRow>& rows, const Peaks& peaks, config::AmpMode mode) {
  const double peak_flops = peaks.measured(mode);
  using observe::Align;
  observe::Table table({{"layer", Align::Left},
                        {"GFLOP", Align::Right},
                        {"MB", Align::Right},
                        {"FLOP/B", Align::Right},
                        {"bound by", Align::Left},
                        {"forward ms", Align::Right},
                        {"backward ms", Align::Right},
                        {"GFLOP/s", Align::Right},
                        {"% of measured", Align::Right},
                        {"% by clock", Align::Right},
                        {"% of roof", Align::Right}});
  LayerRow sum{.name = "all layers", .count = 1, .seconds = {}};
  const auto add = [&](const LayerRow& row) {
    const double roof = attainable_flops(row.intensity(), peak_flops, peaks.bytes);
    const double rate = row.flops_per_second();
    table.add_row({row.count > 1 ? row.name + " (" + std::to_string(row.count) + ")" : row.name,
                   layer_number("%.3g", row.flops * 1e-9), layer_number("%.3g", row.bytes * 1e-6),
                   layer_number("%.3g", row.intensity()), roof < peak_flops ? "memory" : "compute",
                   taken(row.seconds.forward, 1e3), taken(row.seconds.backward, 1e3), taken(rate, 1e-9),
                   share_of(rate, peak_flops), share_of(rate, peaks.theoretical(mode)), share_of(rate, roof)});
  };
  for (const LayerRow& row : rows) {
    add(row);
    sum.flops += row.flops, sum.bytes += row.bytes;
    sum.seconds.forward += row.seconds.forward, sum.seconds.backward += row.seconds.backward;
  }
  add(sum);
  return table.text();
}

}  // namespace welkin::bench
