// SPDX-License-Identifier: Apache-2.0
// What `welkin bench` can measure, and how a command line names it: a word behind the verb (`bench io`), or the flag that the
// word stands for (`bench --mode io`). A new mode is a row of the table in modes.cpp and a function of bench.h, a new study a row
// and a function of studies.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/bench.h"
#include "config/flags/command_line.h"

namespace welkin::apps {

enum class SelectedBy { ModeName, Flag };      // --mode NAME; --NAME
enum class Picture { None, Svg };              // whether --plot has something to write
enum class Steps { OfMode, Synthetic, None };  // what --mode beside the flag may say: any kind of step; synthetic; nothing

struct BenchMode {
  std::string_view name;
  SelectedBy selected_by;
  std::string_view metavar;  // of the flag; empty: a switch
  Picture picture;
  std::string_view help;
  BenchResult (*run)(const BenchRequest& request);
  Steps steps = Steps::OfMode;
};
// A study needs no configuration or starts its ranks itself, and has flags of its own; its flag is written in full.
struct BenchStudy {
  std::string_view name, metavar, help;
  int (*run)(Application& application, int argc, char** argv);
  config::Listed listed = config::Listed::Always;
};

// The rows of both, in the order of the help text.
std::span<const BenchMode> bench_modes();
std::span<const BenchStudy> bench_studies();

// Whether --NAME, or --NAME=VALUE, is among them.
bool names_flag(const std::vector<std::string>& arguments, std::string_view name);

// The first word as the flag that it stands for: "io --json -" is "--mode io --json -", "sweep threads=1,2" is "--sweep
// threads=1,2", "step" is "--mode synthetic" where no --mode is given. ConfigError for a word that names nothing.
std::vector<std::string> with_flag_of_word(std::vector<std::string> arguments);

// The study whose flag is among the arguments; null: none.
const BenchStudy* study_of(const std::vector<std::string>& arguments);

// Its forms, one line each.
std::vector<std::string> usage_of_bench();

// Flags of bench itself, beside those of a configuration.
const std::vector<config::ExtraFlag>& bench_flags();

// ConfigError for two modes at once, and for --mode beside one that it does not go with.
const BenchMode& mode_of(const config::CommandLine& line);

// Before anything is measured: ConfigError for a picture that the mode does not have, and for files that cannot be written.
void check_picture(const config::CommandLine& line, const BenchMode& mode);
void check_outputs(const config::CommandLine& line);

// The result of the first rank, to where the flags say. Throws Interrupted where a signal has come, DataError where there is
// none.
void hand_out(const BenchRequest& request, const BenchMode& mode, const BenchResult& result);

}  // namespace welkin::apps
