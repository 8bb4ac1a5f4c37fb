// SPDX-License-Identifier: Apache-2.0
// Writes the result of a mode.
#include <ATen/Parallel.h>

#include <ostream>
#include <string>

#include "apps/bench/modes.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/text.h"
#include "ops/base/instruction_set.h"
#include "ops/gemm/gemm_provider.h"

namespace welkin::apps {
namespace {

// Describes the measurement: its mode, configuration and machine.
nlohmann::ordered_json description(const BenchMode& mode, const BenchRequest& request) {
  const config::RunConfig& config = request.config;
  return {{"mode", std::string(mode.name)},
          {"config", config.config},
          {"model", config.model.model},
          {"data_loader_config", std::string(config.data.data_loader_config ? name_of(*config.data.data_loader_config) : "")},
          {"num_data_workers", config.data.num_data_workers},
          {"global_batch_size", config.loop.global_batch_size},
          {"ranks", request.world.size()},
          {"device", request.device.str()},
          {"threads", at::get_num_threads()},
          {"gemm", std::string(ops::name_of(ops::gemm_provider()))},
          {"instruction_set", std::string(ops::name_of(ops::instruction_set()))}};
}

}  // namespace

void check_picture(const config::CommandLine& line, const BenchMode& mode) {
  if (mode.picture == Picture::Svg || line.extra.find("plot") == line.extra.end()) return;
  throw ConfigError("bench", cat("this mode has no picture: mode=", mode.name),
                    "Leave --plot out, or take --ladder, --sweep or --explore");
}

// Called before the measurement: otherwise the figures of an hour could be lost.
void check_outputs(const config::CommandLine& line) {
  const auto json = line.extra.find("json"), plot = line.extra.find("plot");
  if (json != line.extra.end() && json->second != "-") check_output("bench", "--json", json->second);
  if (plot == line.extra.end()) return;
  if (plot->second == "-") throw ConfigError("bench", "a picture is not printed: --plot=-", "Name a file: --plot ladder.svg");
  check_output("bench", "--plot", plot->second);
}

// After an interruption the results so far are printed and no file is written: half a comparison is misleading.
void hand_out(const BenchRequest& request, const BenchMode& mode, const BenchResult& result) {
  if (request.is_interrupted()) {
    request.application.err << result.text << std::flush;
    throw Interrupted("bench", "interrupted: what is shown above is all that was measured, and no file was written",
                      "Run it again");
  }
  nlohmann::ordered_json whole = description(mode, request);
  whole.update(result.json);
  const std::string text = whole.dump(2) + "\n";
  const std::string file = bench_flag(request, "json"), picture = bench_flag(request, "plot");
  request.application.out << (file == "-" ? text : result.text) << std::flush;
  if (!file.empty() && file != "-") write_file_atomically(file, text);
  if (!result.has_figures) {
    throw DataError("bench", cat("nothing could be measured", picture.empty() ? "" : ", so there is no picture"),
                    "Each row says why");
  }
  if (!picture.empty()) write_file_atomically(picture, result.svg);
}

}  // namespace welkin::apps
