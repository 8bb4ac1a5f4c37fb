// SPDX-License-Identifier: Apache-2.0
// `welkin data simulate nbody|weather --out DIR`, or `welkin data simulate --layout sc21|sc22|sc23|dl4sci25 --scale S --out DIR`:
// training files from simulated physics. docs/reference/simulate.md.
#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "apps/cli/application.h"
#include "apps/cli/help.h"
#include "apps/cli/verbs.h"
#include "apps/data/simulate_run.h"
#include "core/error.h"
#include "core/text.h"
#include "data/simulate/universe/nbody.h"

namespace welkin::apps {
namespace {

const std::map<std::string, data::simulate::StartOrder> kStarts{{"zeldovich", data::simulate::StartOrder::Zeldovich},
                                                                {"2lpt", data::simulate::StartOrder::Second}};

int simulate_nbody_verb(Application& application, int argc, char** argv) {
  CLI::App app("dark matter and gas in a training and a validation box (docs/reference/simulate.md)");
  SimulateArguments a;
  data::simulate::NbodyOptions options;
  std::optional<int64_t> edge, edge_valid;
  add_simulate_flags(app, "nbody", a, options);
  app.add_option("--edge", edge, "cells along the training box, even (default 64)");
  app.add_option("--edge_valid", edge_valid, "cells along the validation box (default half of --edge)");
  app.add_option("--cell_mpc_h", options.cell_mpc_h, "comoving edge of a cell, Mpc/h")->capture_default_str();
  app.add_option("--redshift", options.redshift, "redshift of the fields")->capture_default_str();
  app.add_option("--redshift_start", options.redshift_start, "redshift of the initial conditions")->capture_default_str();
  app.add_option("--start", options.start, "initial conditions: zeldovich (first order) or 2lpt (second order)")
      ->transform(CLI::CheckedTransformer(kStarts))
      ->default_str("zeldovich");
  app.add_option("--steps", options.steps, "steps of the leapfrog")->capture_default_str();
  app.add_flag("--deconvolve", options.deconvolve, "sharpen the force by the cloud-in-cell window");
  app.add_flag("!--no_npy", options.npy, "leave out the channel-last npy twins");
  app.add_option("--scratch", options.scratch, "folder for boxes larger than memory (default --out)")->type_name("DIR");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  if (a.scale || !a.layout.empty()) data::simulate::set_scale(options, a.scale.value_or(1.0));
  set_if_given(edge, options.edge);
  if (edge && !a.scale) options.edge_valid = std::max<int64_t>(8, *edge / 4 * 2);
  set_if_given(edge_valid, options.edge_valid);
  return run_simulation(application, a, options, 2 * options.steps, data::simulate::simulate_nbody);
}

// The kind by its word, or by the layout where there is no word; empty without either.
std::string kind_of(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-') return argv[1];
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string layout;
    if (word == "--layout" && i + 1 < argc) layout = argv[i + 1];
    if (word.starts_with("--layout=")) layout = word.substr(9);
    if (const auto row = kSimulatedLayouts.find(layout); row != kSimulatedLayouts.end()) return row->second;
  }
  return "";
}

}  // namespace

int verb_data_simulate(Application& application, int argc, char** argv) {
  const std::string kind = kind_of(argc, argv);
  const bool named = argc > 1 && kind == argv[1];
  std::string name = argv[0];
  if (named) {
    name += " " + kind;
    argv[1] = name.data();
    --argc, ++argv;
  }
  if (kind == "nbody") return simulate_nbody_verb(application, argc, argv);
  if (kind == "weather") return simulate_weather_verb(application, argc, argv);
  if (argc > 1 && asks_for_help(argv[1])) {
    print_forms(application, argv[0], {{"nbody", "boxes of dark matter and gas (U-Net)"}, {"weather", "years of weather (ViT)"}},
                "welkin data simulate --layout sc21|sc22|sc23|dl4sci25 --scale S --out DIR   a tutorial's files\n");
    return 0;
  }
  throw ConfigError("simulate", cat("which simulation: given=", kind.empty() ? "nothing" : kind, ", known=nbody, weather"),
                    "Name one, as in `welkin data simulate nbody --out DIR`, or a tutorial with --layout sc22 or sc23");
}

}  // namespace welkin::apps
