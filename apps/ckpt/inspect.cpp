// SPDX-License-Identifier: Apache-2.0
// welkin ckpt inspect PATH: lists the contents of a checkpoint of any format.
#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "apps/cli/verbs.h"
#include "train/interchange/difference.h"

namespace welkin::apps {

int verb_ckpt_inspect(Application& application, int argc, char** argv) {
  CLI::App app(
      "Lists the tensors of a checkpoint folder, a run folder, a .safetensors file or a .pt, .pth or .tar of torch.save");
  std::string path;
  train::interchange::StateChoice choice;
  app.add_option("PATH", path, "checkpoint of any format")->required();
  app.add_option("--checkpoint", choice.checkpoint, "checkpoint of a run folder: best (default), newest, or a step");
  app.add_option("--key", choice.key, "key of the model's state dict in a .pt file");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  application.out << train::interchange::listing(train::interchange::open_state(path, choice));
  return 0;
}

}  // namespace welkin::apps
