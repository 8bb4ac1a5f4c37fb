// SPDX-License-Identifier: Apache-2.0
// The flags of `welkin bench scaling`; scaling.cpp acts on them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace welkin::apps {

struct ScalingArguments {
  std::string kind;
  std::vector<int64_t> ranks{1, 2, 4, 8};
  std::vector<std::string> from, from_noddp;
  std::vector<int64_t> predict;
  std::string calibration;
  std::filesystem::path out = ".";
  std::vector<std::string> config;  // further flags of each run
};

inline void add_scaling_flags(CLI::App& app, ScalingArguments& arguments) {
  app.add_option("--scaling", arguments.kind, "weak: the configured batch is per rank; strong: over all ranks")
      ->required()
      ->check(CLI::IsMember({"weak", "strong"}));
  app.add_option("-n,--ranks", arguments.ranks, "numbers of ranks, started here in turn")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--from", arguments.from,
                 "files of separately submitted jobs (bench --mode all --json FILE, or benchy's) instead of measuring")
      ->type_name("DIR");
  app.add_option("--from_noddp", arguments.from_noddp, "benchy's files of the same runs with --noddp")->type_name("FILE");
  app.add_option("--predict", arguments.predict, "larger numbers of ranks to predict, in rows marked so")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--calibration", arguments.calibration, "output of bench --collectives; without it the links are measured here")
      ->type_name("FILE");
  app.add_option("--out", arguments.out, "folder of the measurements, the table and the plots")
      ->type_name("DIR")
      ->capture_default_str();
}

}  // namespace welkin::apps
