// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluate/model_scores.h"

#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "core/file.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"
#include "train/evaluate/rollout.h"
#include "train/evaluate/scores_report.h"
#include "train/skill/box_plots.h"
#include "train/skill/box_statistics.h"

namespace welkin::apps {

ScoresText score(const train::TrainedModel& model, const at::Tensor& time_mean, int64_t rollout_steps, bool speaks) {
  observe::Console console({.fd = speaks ? STDERR_FILENO : -1});
  if (rollout_steps == 1) {
    const auto own = model.own_samples();
    observe::Progress progress(console, {.title = "evaluate", .total = own.end - own.begin, .now_s = {}});
    const train::Scores scores = model.score(time_mean, [&](int64_t done) { progress.update(done); });
    return {scores.samples, scores.nonfinite, train::scores_table(scores), train::scores_json(scores)};
  }
  const train::Rollout rollout(model, rollout_steps);
  const auto starts = static_cast<int64_t>(rollout.starts().size());
  const auto own = static_cast<int64_t>(rollout.own_starts().size());
  observe::Progress progress(console, {.title = "evaluate", .total = own, .unit = "starts", .now_s = {}});
  const auto leads = train::score_rollout(model, rollout, time_mean, [&](int64_t done) { progress.update(done); });
  return {starts, leads.front().nonfinite, train::rollout_table(leads), train::rollout_json(leads)};
}

void write_box_statistics(Application& application, const train::TrainedModel& model, const std::string& file,
                          const std::string& plots, bool speaks) {
  train::BoxStatistics statistics(model.dataset().spec());
  const int64_t together = std::min(model.batch_size(), model.dataset().size());
  data::Pipeline batches = model.pipeline(together);
  const auto own = model.own_samples();
  if (own.begin == own.end)
    statistics.share_bins(model.replicas(), {});
  else
    batches.resume({.epoch = 0, .step = own.begin / together});
  for (int64_t done = own.begin; done < own.end;) {
    const data::Batch batch = batches.next();
    if (done == own.begin) statistics.share_bins(model.replicas(), batch.target);
    statistics.add(batch.target, model.predict(batch));
    done += batch.input.size(0);
  }
  statistics.add_up(model.replicas());
  if (!speaks) return;
  const std::string json = statistics.json();
  write_file_atomically(file, json);
  if (plots.empty()) return;
  for (const auto& path : train::write_box_plots(json, plots)) application.out << path.string() << "\n";
}

}  // namespace welkin::apps
