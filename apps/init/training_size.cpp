// SPDX-License-Identifier: Apache-2.0
#include "apps/init/training_size.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apps/cli/run_estimate.h"
#include "config/resolve/resolve.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/text.h"
#include "plan/run_estimate.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

namespace fs = std::filesystem;

constexpr double kMemoryShare = 0.5;  // of the machine's memory: reading and the system need some, too
constexpr double kStepFlops = 5e10;   // about a second on a few cores
constexpr int64_t kBoxSamples = 512, kMostSamples = 64;

// The command line of a run of the preset, with its folder in place or temporary.
config::CommandLine preset_line(const fs::path& folder, const std::string& preset, int64_t batch) {
  const std::vector<std::string> words{"welkin init",
                                       "--yaml_config",
                                       (folder / preset).string(),
                                       "--data_root",
                                       (folder / "data").string(),
                                       "--set",
                                       cat("global_batch_size=", batch),
                                       "--device",
                                       "cpu"};
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return config::parse(static_cast<int>(pointers.size()), pointers.data());
}

int64_t training_samples(const Application& application, const fs::path& folder, const std::string& preset) {
  const train::Registries& registries = application.registries;
  const config::RunConfig config = config::resolve(preset_line(folder, preset, 1), 1, registries.known_names()).config;
  return registries.datasets.at(config.data.dataset).open(config, data::Split::Train)->size();
}

}  // namespace

TrainingSize write_sized_preset(const Application& application, const fs::path& folder, const std::string& preset,
                                const std::function<std::string(const TrainingSize&)>& text) {
  const fs::path path = folder / preset;
  TrainingSize size{.samples = kBoxSamples, .memory = "0 B"};
  write_file_atomically(path, text(size));
  if (preset == kForecastPreset) size.samples = training_samples(application, folder, preset);
  const uint64_t memory = process_memory().limit;
  for (size.batch = kMostSamples; size.batch >= 1; size.batch /= 2) {
    const plan::RunEstimate estimate = estimate_of(application, preset_line(folder, preset, size.batch), {});
    size.memory = cat(format_bytes(static_cast<uint64_t>(estimate.memory_bytes())), " of ", format_bytes(memory));
    const bool fits = estimate.memory_bytes() <= kMemoryShare * static_cast<double>(memory) && estimate.step_flops <= kStepFlops;
    if (size.batch == 1 || (fits && size.batch * 4 <= size.samples)) break;
  }
  size.steps = std::clamp<int64_t>(10 * size.samples / size.batch, 100, 5000);
  write_file_atomically(path, text(size));
  return size;
}

}  // namespace welkin::apps
