// SPDX-License-Identifier: Apache-2.0
// welkin data inspect FILE...: what is in a file.
#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "data/inspect.h"
#include "verbs.h"

namespace welkin::apps {

int verb_data_inspect(Application& application, int argc, char** argv) {
  CLI::App app("Describes HDF5, npy and safetensors files: shapes, types, layout, attributes, coordinates and ranges of values");
  std::vector<std::string> files;
  data::InspectOptions options;
  app.add_option("FILE", files, "files to describe")->required();
  app.add_option("--sample", options.most_sampled_values, "values read of each data set for its range")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  if (!parse_arguments(application, app, argc, argv)) return 0;
  for (const std::string& file : files) application.out << data::inspect_file(file, options);
  return 0;
}

}  // namespace welkin::apps
