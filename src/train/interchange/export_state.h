// SPDX-License-Identifier: Apache-2.0
// Writes a State for Python: safetensors, or a .pt that torch.load(FILE, weights_only=True) takes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/interchange/state.h"

namespace welkin::train::interchange {

enum class FileFormat { Safetensors, Torch };

struct ExportOptions {
  FileFormat format = FileFormat::Torch;
  std::optional<at::ScalarType> dtype;  // of the model's floating-point tensors; nothing: as they are
  // false: the model alone, a plain state dict. true: {"model_state", "optimizer_state_dict", "iters", "epoch"}, the second as
  // torch.optim writes it; in safetensors the optimizer's tensors under our names.
  bool optimizer = false;
  // JSON of the normalisation of inputs and outputs (train/evaluate/normalization.h); empty: not known.
  std::string normalization{};
};

// The format by the name's ending: .pt, .pth and .ckpt, .safetensors; nothing for others.
std::optional<FileFormat> format_of_name(const std::filesystem::path& path);

// The run's configuration and the normalization go along. In safetensors they are the metadata "welkin.config" and
// "welkin.normalization"; in a .pt they are the records "extra/config.yaml" and "extra/normalization.json", which torch.load
// passes over. The file appears whole or not at all, and replaces an older one. CheckpointError when a value does not fit the
// dtype, or there is no optimizer to write.
void export_state(const State& state, const ExportOptions& options, const std::filesystem::path& out);

}  // namespace welkin::train::interchange
