// SPDX-License-Identifier: Apache-2.0
// A data set of one's own: plane waves that travel east, and where they are one step later. No file: every sample is computed
// from its key, which is all that a data set has to do.
//   welkin --plugin build/release/examples/libtravelling_waves.so train --yaml_config examples/travelling_waves.yaml
#include <cmath>
#include <numbers>

#include "core/philox.h"
#include "train/learn/registries.h"

namespace {

using namespace welkin;

constexpr int64_t kSamples = 256;
constexpr double kStep = 0.125;  // of a period, from input to target

class TravellingWaves : public data::Dataset {
 public:
  TravellingWaves(int64_t height, int64_t width, data::Split split) : split_(split) {
    spec_.input = spec_.target = {{"wave"}, {""}, {1, height, width}};
  }

  int64_t size() const override { return split_ == data::Split::Train ? kSamples : kSamples / 8; }
  const data::SampleSpec& spec() const override { return spec_; }

  data::SamplePlan plan(data::SampleKey key, const data::Region& wanted) const override {
    data::SamplePlan plan;
    plan.index = key.index;
    plan.region = wanted;
    return plan;
  }

  void read(const data::SamplePlan& plan, data::SampleView out) const override {
    const auto word = philox(stream_key(static_cast<uint64_t>(split_), "waves"), 0, static_cast<uint64_t>(plan.index));
    const double wave_number = 1.0 + static_cast<double>(bounded(word[0], word[1], 3));
    const double phase = unit_float(word[2]);
    fill(plan.region, wave_number, phase, out.input);
    fill(plan.region, wave_number, phase - kStep, out.target);
  }

 private:
  // sin(2 pi (n x + phase)) on the wanted rows and columns; `periods` is in periods.
  void fill(const data::Region& region, double wave_number, double periods, std::span<float> out) const {
    size_t cell = 0;
    for (int64_t row = 0; row < region.extent[0]; ++row) {
      for (int64_t column = 0; column < region.extent[1]; ++column) {
        const double x = static_cast<double>(region.begin[1] + column) / static_cast<double>(spec_.input.shape[2]);
        out[cell++] = static_cast<float>(std::sin(2 * std::numbers::pi * (wave_number * x + periods)));
      }
    }
  }

  data::Split split_;
  data::SampleSpec spec_;
};

}  // namespace

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.datasets.add("travelling_waves", {.open = [](const config::RunConfig& config, data::Split split) {
                            return std::make_unique<TravellingWaves>(config.model.img_size.at(0), config.model.img_size.at(1),
                                                                     split);
                          }});
}
