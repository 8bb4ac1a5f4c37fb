// SPDX-License-Identifier: Apache-2.0
// welkin ckpt verify PATH: checks that checkpoints are complete and undamaged.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/verbs.h"
#include "core/error.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/interchange/state.h"

namespace welkin::apps {
namespace {

namespace fs = std::filesystem;

// The path itself, or all checkpoints of the run in that folder.
std::vector<fs::path> checkpoints_at(const fs::path& path) {
  const fs::path folder = fs::exists(path / "checkpoints") ? path / "checkpoints" : path;
  const train::CheckpointStore store(folder);
  std::vector<fs::path> paths;
  for (const int64_t step : store.steps()) paths.push_back(store.path_of(step));
  if (paths.empty()) paths.push_back(path);
  return paths;
}

// Opening verifies files that have hashes, so nothing is read twice. Reading every tensor verifies formats with own checksums.
uint64_t verified_bytes(const fs::path& path) {
  if (fs::exists(path / "index.json")) {
    const train::Checkpoint checkpoint(path);
    uint64_t bytes = 0;
    for (const auto& [name, file] : checkpoint.index().files) bytes += file.bytes;
    return bytes;
  }
  const train::interchange::State state = train::interchange::open_state(path);
  uint64_t bytes = 0;
  for (const auto& tensor : state.tensors) bytes += tensor.read().nbytes();
  return bytes;
}

}  // namespace

int verb_ckpt_verify(Application& application, int argc, char** argv) {
  CLI::App app("Reads checkpoints whole and compares sizes and hashes; exit code 5 when one is damaged");
  std::string path;
  app.add_option("PATH", path, "checkpoint folder, run folder (all its checkpoints), .safetensors or .pt file")->required();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  int damaged = 0;
  for (const fs::path& checkpoint : checkpoints_at(path)) {
    try {
      const uint64_t bytes = verified_bytes(checkpoint);
      application.out << checkpoint.string() << ": whole, " << bytes << " bytes\n";
    } catch (const Error& error) {
      application.out << checkpoint.string() << ": DAMAGED: " << error.what() << "\n";
      ++damaged;
    }
  }
  return static_cast<int>(damaged == 0 ? ExitCode::Done : ExitCode::Checkpoint);
}

}  // namespace welkin::apps
