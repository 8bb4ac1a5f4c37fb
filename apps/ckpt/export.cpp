// SPDX-License-Identifier: Apache-2.0
// welkin ckpt export CKPT OUT: a checkpoint for Python.
#include <ATen/core/Tensor.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <utility>

#include "apps/cli/verbs.h"
#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/text.h"
#include "data/datasets/open.h"
#include "train/evaluate/normalization.h"
#include "train/interchange/export_state.h"
#include "train/interchange/model_package.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

namespace interchange = train::interchange;

interchange::FileFormat format_of(const std::string& out) {
  if (const auto format = interchange::format_of_name(out)) return *format;
  const std::string ending = std::filesystem::path(out).extension().string();
  if (ending == ".onnx" || ending == ".pt2" || ending == ".ts") {
    throw ConfigError("ckpt export", cat("ONNX, torch.export and TorchScript are written in Python: out=", out),
                      "Run the same command with the wheel's welkin, or welkin.export() (guide: Python)");
  }
  throw ConfigError("ckpt export", cat("the name of the file says no format: out=", out),
                    "Name it .pt or .safetensors, or give --format");
}

// The package's statistics, else those of the run's data. Empty, with a note, where the files are gone.
std::string normalization_of(Application& application, const interchange::State& state) {
  if (interchange::is_package(state.path)) return train::normalization_json(interchange::ModelPackage(state.path).spec());
  if (state.config.empty()) return "";
  try {
    const config::RunConfig config = config::from_yaml(state.config, state.path.string(), kWorldSize);
    const auto dataset = application.registries.datasets.at(config.data.dataset).open(config, data::Split::Valid);
    return train::normalization_json(dataset->spec());
  } catch (const Error& error) {
    application.err << "note: the export holds no normalization, since the run's data cannot be opened: " << error.what() << "\n";
    return "";
  }
}

}  // namespace

int verb_ckpt_export(Application& application, int argc, char** argv) {
  CLI::App app("Writes weights under their PyTorch names: torch.load(OUT, weights_only=True), or safetensors");
  const std::map<std::string, interchange::FileFormat> formats = {{"pt", interchange::FileFormat::Torch},
                                                                  {"safetensors", interchange::FileFormat::Safetensors}};
  const std::map<std::string, at::ScalarType> dtypes = {{"fp32", at::kFloat}, {"bf16", at::kBFloat16}, {"fp16", at::kHalf}};
  std::string path, out, dtype, format;
  interchange::StateChoice choice;
  interchange::ExportOptions options;
  app.add_option("CKPT", path, "checkpoint of any format")->required();
  app.add_option("OUT", out, "file to write; an existing one is replaced")->required();
  app.add_option("--format", format, "format of OUT (default: by its name)")->check(CLI::IsMember({"pt", "safetensors"}));
  app.add_option("--dtype", dtype, "type of the weights: fp32, bf16 or fp16; default: as stored")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_flag("--optimizer", options.optimizer,
               "also write the optimizer's state, as torch.optim: {model_state, optimizer_state_dict, epoch, iters}");
  bool is_averaged = false;
  app.add_flag("--ema", is_averaged, "write the run's moving average of weights instead of the weights");
  app.add_option("--checkpoint", choice.checkpoint, "checkpoint of a run folder: best (default), newest, or a step");
  app.add_option("--key", choice.key, "key of the model's state dict in a .pt file");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  options.format = format.empty() ? format_of(out) : formats.at(format);
  if (!dtype.empty()) options.dtype = dtypes.at(dtype);
  interchange::State state = interchange::open_state(path, choice);
  if (is_averaged) state = interchange::averaged(std::move(state));
  options.normalization = normalization_of(application, state);
  interchange::export_state(state, options, out);
  application.out << state.path.string() << " -> " << out << ", " << std::filesystem::file_size(out) << " bytes\n";
  return 0;
}

}  // namespace welkin::apps
