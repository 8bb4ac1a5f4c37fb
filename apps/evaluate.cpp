// SPDX-License-Identifier: Apache-2.0
// `welkin evaluate`: scores of a checkpoint beside persistence and the time-mean map, as a table and as JSON.
#include <ostream>

#include "core/file.h"
#include "core/text.h"
#include "observe/console.h"
#include "observe/progress.h"
#include "train/scores_report.h"
#include "train/time_mean.h"
#include "trained_run.h"
#include "verbs.h"

namespace welkin::apps {

int verb_evaluate(Application& application, int argc, char** argv) {
  const auto run = parse_trained_run(application, argc, argv, {{"json", "FILE", "write the scores to this file as well"}});
  if (!run) return 0;
  const train::TrainedModel model(application.registries, run->config, run->choice);
  const at::Tensor time_mean = train::read_time_mean(run->config.data.time_means_path, model.dataset().spec());
  observe::Console console;
  observe::Progress progress(console, {.title = "evaluate", .total = model.dataset().size(), .now_s = {}});
  const train::Scores scores = model.score(time_mean, [&](int64_t done) { progress.update(done); });
  progress.finish();
  application.out << "checkpoint " << model.checkpoint().string() << ", step " << model.step() << ", " << scores.samples
                  << " samples\n"
                  << train::scores_table(scores);
  if (const std::string file = extra_or(*run, "json", ""); !file.empty()) {
    write_file_atomically(file, train::scores_json(scores));
  }
  return 0;
}

}  // namespace welkin::apps
