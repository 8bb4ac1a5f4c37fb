// SPDX-License-Identifier: Apache-2.0
// welkin ckpt reshard CKPT OUT: rewrites a checkpoint in the pieces of another number of ranks.
#include "train/checkpoint/reshard.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <ostream>
#include <string>

#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint_store.h"

namespace welkin::apps {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostShards = 65536;

fs::path checkpoint_at(const fs::path& path, const std::string& choice) {
  if (fs::exists(path / "checkpoints")) return train::find_checkpoint(path, choice);
  if (fs::exists(path / "index.json")) return path;
  throw CheckpointError("ckpt reshard", cat("is no checkpoint folder and no run folder: path=", path.string()),
                        "Name a folder step_N or that of a run; welkin ckpt import makes one of a file");
}

}  // namespace

int verb_ckpt_reshard(Application& application, int argc, char** argv) {
  CLI::App app("Rewrites a checkpoint in the pieces of another number of ranks, with the same bits; any run loads either");
  std::string path, out, choice = "best";
  int64_t shards = 1;
  app.add_option("CKPT", path, "checkpoint folder or run folder")->required();
  app.add_option("OUT", out, "folder to make, for instance RUN/checkpoints/step_N of another run")->required();
  app.add_option("--shards", shards,
                 "data-parallel ranks that the state is sharded over (--shard full); 1 (default): whole tensors")
      ->check(CLI::Range(int64_t{1}, kMostShards));
  app.add_option("--checkpoint", choice, "checkpoint of a run folder: best (default), newest, or a step");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  const train::Checkpoint source(checkpoint_at(path, choice));
  const train::ReshardReport report = train::reshard(source, shards, out);
  application.out << source.folder().string() << " -> " << out << ": " << report.tensors << " tensors, ";
  if (shards == 1) {
    application.out << "whole\n";
  } else {
    application.out << report.cut << " of them in pieces of " << shards << " ranks\n";
  }
  return 0;
}

}  // namespace welkin::apps
