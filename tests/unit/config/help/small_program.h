// SPDX-License-Identifier: Apache-2.0
// A program of a few verbs, with one option of each kind.
#pragma once

#include "config/help/option.h"

namespace welkin::config::test {

inline ProgramHelp small_program() {
  using enum ValueKind;
  return {.version = "1.2",
          .options = {{.name = "--plugin", .metavar = "LIB.so", .help = "your own", .kind = Path}},
          .configuration = {{.name = "--config", .metavar = "PRESET", .help = "preset", .group = "Which", .kind = Preset},
                            {.name = "--resume", .help = "go on", .group = "Training", .has_negation = true}},
          .keys = {{.name = "lr", .help = "rate", .kind = Any},
                   {.name = "loss", .help = "which", .kind = Choice, .choices = {"l2", "it's"}}},
          .verbs = {{.name = "train", .summary = "it's training", .takes_configuration = true},
                    {.name = "data inspect",
                     .summary = "what is in a file",
                     .arguments = "FILE...",
                     .options = {{.name = "--bench", .short_name = "-b", .help = "measure: how fast"},
                                 {.name = "--type",
                                  .metavar = "x|y",
                                  .help = ".of what \\ kind",
                                  .kind = Choice,
                                  .choices = {"x", "y"},
                                  .value_may_be_absent = true}},
                     .takes_paths = true,
                     .forms = {{.name = "--deep", .summary = "more"}, {.name = "box", .summary = "a box"}}},
                    {.name = "launch", .summary = "start", .starts_verb = true}}};
}

}  // namespace welkin::config::test
