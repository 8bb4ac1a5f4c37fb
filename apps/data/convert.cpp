// SPDX-License-Identifier: Apache-2.0
// welkin data convert IN OUT --format F: arrays in another format, type, chunking or compression.
#include "data/tools/convert.h"

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "apps/cli/verbs.h"
#include "apps/data/convert_flags.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/log/table.h"

namespace welkin::apps {
namespace {

using observe::Align;

std::string probe_table(const data::ConvertReport& report) {
  observe::Table table({{"array"},
                        {"chunk"},
                        {"smaller", Align::Right},
                        {"write MB/s", Align::Right},
                        {"read MB/s", Align::Right},
                        {"decoded per wanted", Align::Right},
                        {""}});
  for (const data::ProbeRow& row : report.probes) {
    table.add_row({row.array, data::extents_text(row.chunk), cat(static_cast<float>(row.ratio)),
                   cat(static_cast<int64_t>(row.write_mb_s)), cat(static_cast<int64_t>(row.read_mb_s)),
                   cat(static_cast<float>(row.amplification)), row.chosen ? "taken" : ""});
  }
  return table.text();
}

std::string packing_table(const data::ConvertReport& report) {
  observe::Table table({{"array"},
                        {"channel", Align::Right},
                        {"scale", Align::Right},
                        {"offset", Align::Right},
                        {"error at most", Align::Right},
                        {"NaN", Align::Right}});
  for (const data::PackingReport& row : report.packings) {
    table.add_row({row.array, cat(row.channel), cat(row.scale), cat(row.offset), cat(row.bound), cat(row.num_missing)});
  }
  return table.text();
}

}  // namespace

int verb_data_convert(Application& application, int argc, char** argv) {
  CLI::App app(
      "Rewrites the arrays of a file in another format, type, chunking or compression; known inputs: HDF5, npy, Zarr 2 and 3, "
      "WebDataset tar, LMDB, raw");
  ConvertFlags flags;
  data::ConvertOptions options;
  add_convert_flags(app, flags, options);
  if (!parse_arguments(application, app, argc, argv)) return 0;
  apply_convert_flags(flags, options);
  options.command = "welkin data convert";
  for (int i = 1; i < argc; ++i) options.command += cat(" ", argv[i]);
  const data::ConvertReport report = data::convert_arrays(flags.from, flags.to, options);
  for (const std::string& note : report.notes) application.err << "warning: " << note << "\n";
  if (!report.probes.empty()) application.out << probe_table(report);
  if (!report.packings.empty()) application.out << packing_table(report);
  application.out << report.num_arrays << " arrays, " << format_bytes(report.bytes_in) << " -> " << format_bytes(report.bytes_out)
                  << ": " << flags.to << "\n";
  return 0;
}

}  // namespace welkin::apps
