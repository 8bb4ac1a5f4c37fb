// SPDX-License-Identifier: Apache-2.0
// The table of `welkin bench`'s modes, and their names on a command line: a word behind the verb (`bench io`), or the flag that
// the word stands for (`bench --mode io`). A new mode is a row of the table in modes.cpp and a function of bench.h, a new study
// a row and a function of studies.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/bench.h"
#include "config/flags/command_line.h"

namespace welkin::apps {

enum class SelectedBy { ModeName, Flag };      // --mode NAME; --NAME
enum class Picture { None, Svg };              // an SVG: --plot has a picture to write
enum class Steps { OfMode, Synthetic, None };  // values that --mode may have beside the flag: any kind of step; synthetic; none

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

// The tables of both, in the order of the help text.
std::span<const BenchMode> bench_modes();
std::span<const BenchStudy> bench_studies();

// True if --NAME or --NAME=VALUE is among the arguments.
bool names_flag(const std::vector<std::string>& arguments, std::string_view name);

// Replaces the first word by its flag: "io --json -" becomes "--mode io --json -", "sweep threads=1,2" becomes "--sweep
// threads=1,2", "step" becomes "--mode synthetic" where no --mode is given. ConfigError for an unknown word.
std::vector<std::string> with_flag_of_word(std::vector<std::string> arguments);

// The study whose flag is among the arguments, else null.
const BenchStudy* study_of(const std::vector<std::string>& arguments);

// Forms of the command, one line each.
std::vector<std::string> usage_of_bench();

// Flags of bench itself, beside those of a configuration.
const std::vector<config::ExtraFlag>& bench_flags();

// ConfigError for two modes at once, and for a --mode that the mode's flag does not allow.
const BenchMode& mode_of(const config::CommandLine& line);

// Called before the measurement. ConfigError for a picture that the mode does not have, and for files that cannot be written.
void check_picture(const config::CommandLine& line, const BenchMode& mode);
void check_outputs(const config::CommandLine& line);

// Writes the first rank's result to where the flags say. Throws Interrupted where a signal has come, DataError where there is
// no result.
void hand_out(const BenchRequest& request, const BenchMode& mode, const BenchResult& result);

}  // namespace welkin::apps
