// SPDX-License-Identifier: Apache-2.0
#include "train/run/nonfinite_watch.h"

#include <cmath>
#include <utility>

#include "core/text.h"
#include "train/learn/nonfinite_text.h"

namespace welkin::train {
namespace {

constexpr const char* kRemedy =
    "The data of this step are finite: lower the rate, set clip_norm, or take --on_nonfinite skip; "
    "--resume continues from the checkpoint";
constexpr const char* kDataRemedy =
    "Fill these values (welkin data ingest --missing mean), or set nan_policy to mask (the mean) or hole (no weight); nan_policy "
    "report names all of them";

// The first few sample indices of a step.
std::string samples_text(const std::vector<int64_t>& samples) {
  constexpr size_t kShown = 16;
  const std::vector<int64_t> first(samples.begin(),
                                   samples.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, samples.size())));
  return cat("[", join(first, " "), samples.size() > kShown ? " ..." : "", "]");
}

const char* event_name(double loss) { return std::isfinite(loss) ? "nonfinite_gradient" : "nonfinite_loss"; }

std::string event_number(double value) { return std::isfinite(value) ? cat(value) : nonfinite_text(value); }

}  // namespace

void NonFiniteWatch::add(const StepRecord& record) {
  waiting_.push_back(record);
  if (record.loss.is_cpu() || waiting_.size() >= kReadInterval) flush();
}

void NonFiniteWatch::flush() {
  const auto records = std::exchange(waiting_, {});
  for (const StepRecord& record : records) {
    if (record.gradient.nonfinite.item<float>() == 0) continue;
    if (notice_) notice_(event_name(record.loss.item<double>()), record);
    const std::string in_data = in_data_(record);
    const std::string what = cat(describe(record), in_data.empty() ? "" : cat(", not finite in the data: ", in_data));
    if (action_ == config::NonFiniteAction::Stop) throw NonFiniteError(what, in_data.empty() ? kRemedy : kDataRemedy);
    report_(cat(what, ", action=skip"));
  }
}

std::string NonFiniteWatch::describe(const StepRecord& record) const {
  const double loss = record.loss.item<double>();
  const std::string checkpoint = last_checkpoint_();
  return cat("event ", event_name(loss), ": step=", record.iteration, ", loss=", event_number(loss),
             ", gradient_norm=", event_number(record.gradient.norm.item<double>()), ", rate=", record.rate.item<double>(),
             ", samples=", samples_text(samples_(record)), ", last_checkpoint=", checkpoint.empty() ? "none" : checkpoint);
}

}  // namespace welkin::train
