// SPDX-License-Identifier: Apache-2.0
// welkin ckpt diff A B: two checkpoints of any formats, tensor by tensor.
#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "apps/cli/verbs.h"
#include "core/error.h"
#include "train/interchange/difference.h"

namespace welkin::apps {

int verb_ckpt_diff(Application& application, int argc, char** argv) {
  namespace interchange = train::interchange;
  CLI::App app("Compares tensors of the same name; exit code 0 when all have equal bits, 1 when not");
  std::string first, second;
  interchange::StateChoice choice;
  bool all = false;
  app.add_option("A", first, "checkpoint of any format")->required();
  app.add_option("B", second, "checkpoint to compare with")->required();
  app.add_option("--checkpoint", choice.checkpoint, "checkpoint of a run folder: best (default), newest, or a step");
  app.add_option("--key", choice.key, "key of the model's state dict in .pt files");
  app.add_flag("--all", all, "list equal tensors too");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  const interchange::State a = interchange::open_state(first, choice), b = interchange::open_state(second, choice);
  for (const std::string& group : interchange::groups_of_one(a, b)) {
    application.out << "not compared: group " << group << ", only one of the two has it\n";
  }
  const auto rows = interchange::compare(a, b);
  application.out << interchange::difference_table(rows, all);
  return static_cast<int>(interchange::is_equal(rows) ? ExitCode::Done : ExitCode::Other);
}

}  // namespace welkin::apps
