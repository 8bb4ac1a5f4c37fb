// SPDX-License-Identifier: Apache-2.0
// welkin bench --scaling weak|strong: measures one number of ranks after the other, each by its own run of `bench --mode all`,
// or reads the files of separately submitted jobs. It makes the table and its plots.

#include "bench/scaling/scaling.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/scaling_flags.h"
#include "apps/bench/studies.h"
#include "apps/cli/rank_run.h"
#include "bench/scaling/collectives_bench.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

class ScalingRun {
 public:
  ScalingRun(Application& application, ScalingArguments arguments)
      : application_(application), arguments_(std::move(arguments)) {}

  int run() {
    check();
    make_folders(arguments_.out);
    if (arguments_.from.empty()) {
      const int code = measure_all();
      if (code != 0) return code;
    }
    std::vector<bench::ScalingRow> rows;
    for (const std::string& path : arguments_.from) rows.push_back(bench::read_scaling_row(path));
    std::vector<bench::ScalingRow> noddp;
    for (const std::string& path : arguments_.from_noddp) noddp.push_back(bench::read_scaling_row(path));
    bench::add_noddp(rows, noddp);
    bench::ScalingTable table = bench::scaling_table(kind(), std::move(rows));
    if (!arguments_.predict.empty()) bench::predict_rows(table, exchange(), arguments_.predict);
    application_.out << bench::scaling_text(table) << std::flush;
    write_file_atomically(named("_scaling.json"), bench::scaling_json(table).dump(2) + "\n");
    for (const auto& [name, svg] : bench::scaling_plots(table)) write_file_atomically(named(cat("_", name, ".svg")), svg);
    return 0;
  }

 private:
  void check() const {
    const auto refuse = [](const std::string& what, const char* remedy) { throw ConfigError("bench", what, remedy); };
    if (arguments_.from.empty() && !arguments_.from_noddp.empty()) {
      refuse("runs without communication belong to runs with it: --from_noddp without --from", "Give both");
    }
    if (!arguments_.from.empty() && !arguments_.config.empty()) {
      refuse(cat("nothing is measured with --from: ", arguments_.config.front()),
             "Leave the other flags out, or leave --from out");
    }
    if (arguments_.from.empty() && this_rank_info().world_size > 1) {
      refuse("a scaling study starts its ranks itself, and this process is one of several",
             "Submit one bench --mode all --json weak_scale_N.json per number of ranks and merge them with --from");
    }
    for (const std::string& word : arguments_.config) {
      const std::string flag = word.substr(0, word.find('='));
      if (flag == "--json" || flag == "--mode") refuse(cat("the study sets this itself: ", word), "Leave it out");
    }
  }

  bench::ScalingKind kind() const { return arguments_.kind == "weak" ? bench::ScalingKind::Weak : bench::ScalingKind::Strong; }
  std::filesystem::path named(const std::string& end) const { return arguments_.out / (arguments_.kind + end); }

  int run_ranks(int64_t ranks, std::vector<std::string> more) const {
    std::vector<std::string> words = arguments_.config;
    words.insert(words.end(), more.begin(), more.end());
    return run_local_ranks(own_command_with("bench", words), ranks);
  }

  // The configuration as given, resolved for one rank.
  config::RunConfig own_config() const {
    std::vector<const char*> words{"welkin bench"};
    for (const std::string& word : arguments_.config) words.push_back(word.c_str());
    const config::CommandLine line = parse_bench(static_cast<int>(words.size()), words.data());
    return config::resolve(line, /*world_size=*/1, application_.registries.known_names()).config;
  }

  // Weak scaling: each rank has the configured batch.
  std::vector<std::string> batch_flags() const {
    if (arguments_.kind == "strong") return {};
    return {"--local_batch_size", cat(own_config().loop.global_batch_size)};
  }

  int measure_all() {
    const std::vector<std::string> batch = batch_flags();
    for (const int64_t ranks : arguments_.ranks) {
      const std::string file = named(cat("_scale_", ranks, ".json")).string();
      std::vector<std::string> words{"--mode", "all", "--json", file};
      words.insert(words.end(), batch.begin(), batch.end());
      application_.out << ranks << (ranks == 1 ? " rank:\n" : " ranks:\n") << std::flush;
      if (const int code = run_ranks(ranks, words); code != 0) return code;
      arguments_.from.push_back(file);
    }
    if (arguments_.predict.empty() || !arguments_.calibration.empty()) return 0;
    arguments_.calibration = named("_calibration.json").string();
    return run_local_ranks(own_command_with("bench", {"--collectives", "--device", std::string(name_of(own_config().loop.device)),
                                                      "--json", arguments_.calibration}),
                           std::max<int64_t>(2, std::ranges::max(arguments_.ranks)));
  }

  plan::LinkFit exchange() const {
    if (arguments_.calibration.empty()) {
      throw ConfigError("bench", "larger machines are predicted from measured links: --calibration is not given",
                        "Give what welkin launch -n N -- bench --collectives --json FILE has written");
    }
    const std::vector<plan::LinkFit> fits = bench::read_calibration(arguments_.calibration);
    const auto found = std::ranges::find_if(
        fits, [](const plan::LinkFit& fit) { return fit.axis == "dp" && fit.kind == plan::CollectiveKind::AllReduce; });
    if (found != fits.end()) return *found;
    throw DataError("bench", cat("the calibration has no all_reduce over dp: path=", arguments_.calibration),
                    "Measure it with at least two data-parallel ranks");
  }

  Application& application_;
  ScalingArguments arguments_;
};

}  // namespace

int bench_scaling(Application& application, int argc, char** argv) {
  ScalingArguments arguments;
  CLI::App app(
      "Measures one number of ranks after the other and makes the scaling table and its four plots; all other flags are those of "
      "welkin bench");
  add_scaling_flags(app, arguments);
  app.allow_extras();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  arguments.config = app.remaining();
  return ScalingRun(application, std::move(arguments)).run();
}

}  // namespace welkin::apps
