// SPDX-License-Identifier: Apache-2.0
// Sources of fields in time: a folder of training files, or an archive of variables (data/cf/archive.h). Torch-free.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/cf/file_times.h"
#include "data/datasets/field_file.h"

namespace welkin::data {

struct FieldSource {
  std::filesystem::path folder{};
  std::vector<std::string> variables{};  // of an archive (archive.h); empty: a folder of training files
  std::vector<double> levels{};
  std::vector<std::string> times{};
  std::string times_key = "times";
  TimeKeys time_keys{};  // of files that do not say the units of their times
};

struct FieldFiles {
  std::vector<std::unique_ptr<FieldFile>> files;  // in the order of their times; an archive's parts
  std::vector<std::filesystem::path> paths;       // the files on the disk, for fingerprints
};

// All share one cache of decoded chunks. Throws the errors of list_field_files(), FieldFile and open_archive(); ConfigError for
// times or levels without variables.
FieldFiles open_field_files(const FieldSource& source);
// The first of them alone, where the others need not be opened.
std::unique_ptr<FieldFile> open_first_field_file(const FieldSource& source);

// Median step of a file, since months differ in length; 0 where the file has fewer than two times.
double hours_between_steps(const FieldFacts& facts);

// The difference in kind of two files: "units of t2m: K and degC"; empty: none. Units, places and times that one of them does
// not say are no difference. `with_steps`: the time between steps counts too.
std::string difference_between(const FieldFacts& first, const FieldFacts& other, bool with_steps = true);

}  // namespace welkin::data
