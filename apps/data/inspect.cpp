// SPDX-License-Identifier: Apache-2.0
// welkin data inspect FILE...: describes the contents of a file.
#include "data/tools/inspect.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/check_helper.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/text.h"
#include "data/formats/check_arrays.h"
#include "data/tools/inspect_bench.h"
#include "data/tools/inspect_plot.h"

namespace welkin::apps {

int verb_data_inspect(Application& application, int argc, char** argv) {
  CLI::App app(
      "Describes HDF5, netCDF, GRIB, GenericIO, npy, Zarr, WebDataset tar, LMDB, raw and safetensors files: shapes, types, "
      "layout, "
      "attributes, coordinates and ranges of values; of a folder the files, their variables and times");
  std::vector<std::string> files;
  data::InspectOptions options;
  data::FileBenchOptions bench;
  bool benches = false;
  data::FieldPlotOptions plot;
  app.add_option("FILE", files, "files and folders to describe")->required();
  app.add_option("--sample", options.most_sampled_values, "values read of each data set for its range")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--bench", benches, "measure what the file delivers to training, and say why");
  app.add_option("--crop", bench.crop, "with --bench: edge of the crops read from a box")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", bench.num_threads, "threads of --bench; 0 = the cores of this process")->check(CLI::Range(0, 4096));
  app.add_option("--plot", plot.output, "draw one field to this file instead, .png or .svg")->type_name("FILE");
  app.add_option("--channel", plot.channel, "with --plot: a channel, variable or array, by name or number");
  app.add_option("--time", plot.time, "with --plot: a date, or a number from 0; for a box: the plane");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  options.helper = plot.helper = check_helper();
  data::check_array_files(std::vector<std::filesystem::path>(files.begin(), files.end()));
  if (!plot.output.empty()) {
    if (files.size() > 1)
      throw ConfigError("data", cat("one picture of several files: files=", files.size()), "Give one file with --plot");
    application.out << data::plot_field(files.front(), plot);
    return 0;
  }
  for (const std::string& file : files) {
    application.out << (benches ? data::bench_file(file, bench) : data::inspect_file(file, options));
  }
  return 0;
}

}  // namespace welkin::apps
