// SPDX-License-Identifier: Apache-2.0
// index.json of a checkpoint folder: the position of the run, the files with their hashes, and the place of each tensor. Its
// last key is a hash of all the others. Every byte that is read counts as hostile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace welkin::train {

// A place in a run. `iteration` counts training steps of the whole run, skipped ones too. If step_in_epoch equals the steps of
// an epoch, the epoch's end (validation) is still to be done. A finished run whose last epoch is partial stays within it.
struct RunPosition {
  int64_t iteration = 0;
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  bool operator==(const RunPosition&) const = default;
};

// Position in the data, in samples: a run of another batch size needs it.
struct LoaderState {
  int64_t global_batch_size = 0;
  int64_t samples_in_epoch = 0;  // samples that were trained on
  bool operator==(const LoaderState&) const = default;
};

// The state of early stopping. Without early stopping the metric is empty.
struct StoppingCount {
  std::string metric;
  std::optional<double> best;
  int64_t best_step = 0;
  int64_t waited = 0;
  bool operator==(const StoppingCount&) const = default;
};

struct StoredFile {
  uint64_t bytes = 0;
  uint64_t xxh3 = 0;
};

// How a tensor in pieces is cut: along `dim` into one part for each of `ranks`. Each part has its share of every one of
// `blocks` equal blocks (q, k and v of a joint projection). `order` is the order of a part's dims in memory, outermost first.
struct PieceLayout {
  std::vector<int64_t> order = {};
  int64_t dim = 0, blocks = 1, ranks = 1;
  bool operator==(const PieceLayout&) const = default;
};

// `count` elements of a part in memory order, from `begin` on; in their file one dim, under the tensor's name.
struct TensorPiece {
  std::string file;
  int64_t part = 0, begin = 0, count = 0;
};

// Where a piece stands in its tensor.
struct PiecePlace {
  std::vector<int64_t> whole_shape;
  PieceLayout layout;
  int64_t part = 0, begin = 0;
};

struct TensorRecord {
  std::string file;             // of a tensor in pieces: the file of one of them
  std::string dtype;            // safetensors name
  std::vector<int64_t> shape;   // of the whole parameter over all ranks
  std::vector<int64_t> offset;  // of the part in `file` in the whole parameter
  std::string placement;        // "replicated", or how it is split
  PieceLayout layout = {};
  std::vector<TensorPiece> pieces = {};  // each in the file of its rank; empty: the tensor is whole in `file`
};

struct CheckpointIndex {
  RunPosition position;
  uint64_t seed = 0;
  std::string config;                     // YAML (config/print/print.h)
  std::optional<double> validation_loss;  // of the weights in this checkpoint
  std::optional<double> best_loss;        // smallest value of best_metric in the run so far
  std::optional<int64_t> best_step;       // of the checkpoint that has it
  std::string best_metric;                // the metric that best_loss is a value of; empty: the validation loss
  StoppingCount stopping;                 // of early stopping
  std::optional<double> learning_rate;    // of the next step
  std::vector<std::string> parameters;    // the model's, in the order of registration, by which PyTorch's optimizers number them
  std::map<std::string, int64_t> mesh;    // ranks along each axis (dp, tp, cp) of the run that saved; empty: one process
  LoaderState loader;
  std::map<std::string, std::string> facts;  // other choices, for people: device, precision, providers of operators
  std::string origin;                        // the file that it was imported from; empty: saved by a run
  std::map<std::string, StoredFile> files;
  // The files that the samples come from, by name (data/storage/fingerprint.h); empty if there are none.
  std::map<std::string, StoredFile> data;
  std::map<std::string, TensorRecord> tensors;
};

std::string to_json(const CheckpointIndex& index);
// Throws CheckpointError naming `source` and what is wrong: JSON, version, hash, a missing or mistyped key.
CheckpointIndex parse_checkpoint_index(const std::string& text, const std::string& source);

}  // namespace welkin::train
