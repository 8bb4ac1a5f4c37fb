// SPDX-License-Identifier: Apache-2.0
// The options of `welkin data ingest`.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace welkin::data::ingest {

enum class MissingPolicy {
  Error,  // a point without a value ends the run
  Mean,   // filled with the channel's mean over the training part
  Nan,    // left as NaN
  Mask,   // left as NaN, which then has no weight in a run, and one mask for all channels that share it: 1 where there is a value
};
enum class RegridMethod { Conservative, Bilinear };  // regrid.h
enum class ConstantPolicy { Keep, Drop };            // a channel that never changes in the training part
enum class DuplicatePolicy { Error, First, Last };   // the same field twice, in the order of the files
enum class GapPolicy { Split, Error };               // a file ends at a gap, or the run does
enum class FilePolicy { Auto, Year, Segment };  // one file per year, or per gapless segment; Auto: years of 100 steps and more

struct VariableChoice {
  std::string source;  // a variable ("t", "2t", "t2m": every level), or a channel ("t500")
  std::string name;    // new name of the variable; empty keeps it
};

struct Split {
  std::string valid_from, test_from;             // dates; empty = not given
  int64_t valid_last = 0, test_last = 0;         // seconds held back at the end
  double valid_fraction = 0, test_fraction = 0;  // of the times
};

struct Crop {
  int64_t height = 0, width = 0;  // 0 = whole
  int64_t top = 0, left = 0;      // first row from the north, first column from the west
};

struct NewGrid {
  int64_t height = 0, width = 0;  // cells of one size without points at the poles; 0 = the grid of the input
  RegridMethod method = RegridMethod::Conservative;
};

struct Options {
  std::vector<std::filesystem::path> inputs;  // files and folders
  bool recursive = false;                     // folders inside of folders too
  std::filesystem::path out;                  // must not exist
  std::vector<VariableChoice> variables;      // empty = everything that has a time, in the order of the files
  std::vector<double> levels;                 // empty = all
  std::vector<int32_t> members;               // empty = all
  std::vector<std::string> circular;          // channels in degrees that become <name>_sin and <name>_cos
  std::vector<std::string> roles;             // channel=role (channel_roles.h); a field without a time is static by itself
  MissingPolicy missing = MissingPolicy::Error;
  ConstantPolicy constant = ConstantPolicy::Keep;
  DuplicatePolicy duplicates = DuplicatePolicy::Error;
  GapPolicy gaps = GapPolicy::Split;
  FilePolicy files = FilePolicy::Auto;
  Split split;
  NewGrid grid;
  Crop crop;
  int64_t patch = 0;      // crop at the south and east end so that it divides both sides; 0 = no
  int64_t step = 0;       // seconds: keep only times that are multiples of it since 00:00; 0 = all
  int64_t min_steps = 2;  // shorter gapless pieces hold no pair and are left out
  std::string licence;    // text for the provenance
  std::string command;    // how this was called, for the provenance
};

}  // namespace welkin::data::ingest
