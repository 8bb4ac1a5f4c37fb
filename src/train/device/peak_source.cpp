// SPDX-License-Identifier: Apache-2.0
#include "train/device/peak_source.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

constexpr double kSecondsToKeep = 1.0;  // once per processor, so it may take its time

std::string gflops_text(double flops) { return cat(static_cast<int64_t>(flops * 1e-9 + 0.5), " GFLOP/s"); }

std::string conditions_text(const PeakConditions& on) {
  return cat(on.processor, ", ", on.threads, on.threads == 1 ? " thread, " : " threads, ", on.instruction_set, ", ", on.gemm,
             ", ", on.dtype);
}

}  // namespace

PeakSource::PeakSource(std::optional<PeakCache> cache, PeakConditions conditions, bool anew, Measure measure,
                       std::function<void(const std::string&)> note)
    : cache_(std::move(cache)),
      conditions_(std::move(conditions)),
      anew_(anew),
      measure_(std::move(measure)),
      note_(std::move(note)) {}

void PeakSource::measure(double seconds) {
  flops_ = measure_(seconds);
  kept_from_.clear();
}

// A cache folder that cannot be written is no reason to end a run.
void PeakSource::keep() {
  try {
    cache_->keep({.conditions = conditions_, .gflops = flops_ * 1e-9, .date = date_today()});
    note_(cat("Peak of matmuls: ", gflops_text(flops_), ", kept for later runs in ", cache_->file().string(), " (",
              conditions_text(conditions_), "); --measure_peak measures it again"));
  } catch (const Error& error) {
    note_(cat("The peak of matmuls is not kept: ", error.what()));
  }
}

double PeakSource::flops(double model_flops, double short_seconds) {
  if (flops_ == 0) {
    const auto kept = cache_ && !anew_ ? cache_->find(conditions_) : std::nullopt;
    if (kept) {
      flops_ = kept->gflops * 1e9;
      kept_from_ = kept->date;
    } else {
      measure(cache_ ? kSecondsToKeep : short_seconds);
      if (cache_) keep();
    }
  }
  if (!kept_from_.empty() && model_flops > flops_) {
    const double before = flops_;
    measure(kSecondsToKeep);
    flops_ = std::max(flops_, model_flops);
    note_(cat("The model's ", gflops_text(model_flops), " are more than the kept peak of ", gflops_text(before),
              ", which was measured on a busy machine: it is measured again"));
    keep();
  }
  return flops_;
}

std::string PeakSource::origin() const { return kept_from_.empty() ? "measured" : cat("kept from ", kept_from_); }

}  // namespace welkin::train
