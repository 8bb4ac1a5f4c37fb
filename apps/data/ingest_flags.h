// SPDX-License-Identifier: Apache-2.0
// The flags of `welkin data ingest`; ingest.cpp acts on them.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/ingest/box/box.h"
#include "data/ingest/options.h"

namespace welkin::apps {

namespace in = data::ingest;

// Flags as typed; converted to the library's options after parsing.
struct IngestArguments {
  in::Options fields;
  in::BoxOptions box;
  bool is_box = false, quiet = false, is_bilinear = false;
  std::vector<std::string> variables, input, target;
  std::filesystem::path component;
  std::string crop, grid, step, valid_last, test_last, shape;
};

template <typename Enum>
inline void add_choice(CLI::App& app, const std::string& flag, Enum& value, const std::map<std::string, Enum>& names,
                       const std::string& help) {
  app.add_option(flag, value, help)->transform(CLI::CheckedTransformer(names))->option_text("CHOICE");
}

inline void add_selection(CLI::App& app, IngestArguments& a) {
  app.add_option("inputs", a.fields.inputs, "files, and folders of GRIB, netCDF and HDF5 files")->required();
  app.add_flag("--recursive", a.fields.recursive, "also search subfolders");
  app.add_option("--out", a.fields.out, "folder to make; must not exist")->type_name("DIR")->required();
  app.add_option("--variables", a.variables, "t2m,u10 or t500; source:new renames; default everything with a time")
      ->delimiter(',');
  app.add_option("--levels", a.fields.levels, "only these levels (hPa)")->delimiter(',');
  app.add_option("--members", a.fields.members, "only these ensemble members")->delimiter(',');
  app.add_option("--circular", a.fields.circular, "channels in degrees to be written as sine and cosine")->delimiter(',');
  CLI::Option* grid = app.add_option("--grid", a.grid, "HxW: regrid all fields to HxW cells of the whole globe");
  app.add_flag("--bilinear", a.is_bilinear, "with --grid: interpolate instead of first-order conservative")->needs(grid);
  app.add_option("--crop", a.crop, "HxW or HxW+TOP+LEFT, rows from the north, columns from the west");
  app.add_option("--patch", a.fields.patch, "crop at the south and east end so that this divides both sides");
  app.add_option("--step", a.step, "keep only times that are multiples of this since 00:00, e.g. 6h");
}

inline void add_split(CLI::App& app, IngestArguments& a) {
  app.add_option("--valid_from", a.fields.split.valid_from, "first time of the validation part, e.g. 2019-03-25");
  app.add_option("--test_from", a.fields.split.test_from, "first time of the test part");
  app.add_option("--valid_last", a.valid_last, "length of time held back at the end, e.g. 168h");
  app.add_option("--test_last", a.test_last, "length of the test part, after the validation part");
  app.add_option("--valid_fraction", a.fields.split.valid_fraction,
                 "share of the times (with --box: of the box) held back at the end");
  app.add_option("--test_fraction", a.fields.split.test_fraction, "share of the test part");
}

inline void add_policies(CLI::App& app, IngestArguments& a) {
  using enum in::MissingPolicy;
  add_choice(app, "--missing", a.fields.missing, {{"error", Error}, {"mean", Mean}, {"nan", Nan}, {"mask", Mask}},
             "points without a value; mask: NaN with no weight, plus an input mask");
  app.add_option("--role", a.fields.roles, "lsm=static,tp=diagnostic: prognostic, forcing, diagnostic or static")->delimiter(',');
  add_choice(app, "--constant", a.fields.constant, {{"keep", in::ConstantPolicy::Keep}, {"drop", in::ConstantPolicy::Drop}},
             "channels that never change: keep (deviation 1) or drop");
  add_choice(app, "--duplicates", a.fields.duplicates,
             {{"error", in::DuplicatePolicy::Error}, {"first", in::DuplicatePolicy::First}, {"last", in::DuplicatePolicy::Last}},
             "the same field twice: error, first or last");
  add_choice(app, "--gaps", a.fields.gaps, {{"split", in::GapPolicy::Split}, {"error", in::GapPolicy::Error}},
             "missing times: split files, or error");
  add_choice(app, "--files", a.fields.files,
             {{"auto", in::FilePolicy::Auto}, {"year", in::FilePolicy::Year}, {"segment", in::FilePolicy::Segment}},
             "one file per year or per gapless segment");
  app.add_option("--min_steps", a.fields.min_steps, "drop gapless pieces with fewer steps")->check(CLI::PositiveNumber);
  app.add_option("--licence", a.fields.licence, "licence text for the output, added to the one of SOURCE.md");
  app.add_option("--component", a.component, "libwelkin_ingest.so; default beside libwelkin.so")->type_name("FILE");
  app.add_flag("--quiet", a.quiet, "print no report");
}

inline void add_box(CLI::App& app, IngestArguments& a) {
  app.add_flag("--box", a.is_box, "three-dimensional fields to Nbody (--input) and Hydro (--target)");
  app.add_option("--input", a.input, "box: fields or data sets, source:new renames")->delimiter(',');
  app.add_option("--target", a.target, "box: targets, likewise")->delimiter(',');
  app.add_option("--vector", a.box.vector, "box: components along axes 0,1,2, scaled by one factor")->delimiter(',');
  app.add_option("--log", a.box.log, "box: channels to take the logarithm of")->delimiter(',');
  app.add_option("--shape", a.shape, "box: shape to read a data set as, e.g. 1x64x512");
  app.add_option("--cells", a.box.cells, "box: edge of the mesh for the field particles/density (GenericIO)");
  app.add_option("--target_deviations", a.box.target_deviations, "box: number of deviations to divide targets by (default 1)")
      ->check(CLI::PositiveNumber);
  app.add_option("--valid_axis", a.box.valid_axis, "box: axis along which --valid_fraction is cut");
  app.add_flag("--periodic", a.box.periodic, "box: all axes wrap around");
}

// ConfigError that names the flags given for the other kind of files: they would have no effect. `other`: what chooses that kind.
void refuse_other_flags(const CLI::App& app, bool is_box, const std::string& other);

// Convert typed text to the library's options. `command`: the command line, for the provenance.
void settle_fields(IngestArguments& arguments, const std::string& command);
void settle_box(IngestArguments& arguments, const std::string& command);

inline void add_ingest_flags(CLI::App& app, IngestArguments& arguments) {
  add_selection(app, arguments);
  add_split(app, arguments);
  add_policies(app, arguments);
  add_box(app, arguments);
}

}  // namespace welkin::apps
