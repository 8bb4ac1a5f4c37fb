// SPDX-License-Identifier: Apache-2.0
// The data sets of a run on pairs that another program makes while it trains (data/online/pair_stream.h). The configuration and
// that program describe the pairs. Training draws from the stream; validation has the pairs held out.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "data/datasets/open.h"
#include "data/online/pair_stream.h"
#include "data/sample/dataset.h"

namespace welkin::data {

// Facts of the pairs that the configuration does not give.
struct OnlineFacts {
  struct Channel {
    std::string unit{};        // empty: not known
    double mean = 0, std = 0;  // of values after clip and logarithm; std 0: those of the first pairs
  };
  std::map<std::string, Channel> channels{};    // by name, for inputs and targets alike
  std::vector<double> latitude{}, longitude{};  // degrees, north to south; empty: a plane
};

// Names, shapes, units and transforms; means and deviations only of the channels that have them in `facts`, others 0 and 1.
// ConfigError for channels that the run does not have, axes of another length, and keys that a run without files does not take.
SampleSpec online_spec(const config::RunConfig& config, const OnlineFacts& facts);

// Sizes of the buffer by the keys online_pairs, online_uses, limit_nsamples_val and global_batch_size. None are held out where
// the file of an earlier run holds them (held_out_file()).
PairStreamOptions stream_options(const config::RunConfig& config);

// The file of pairs held out, for later runs and welkin evaluate; empty: there is none (valid_data_path is not given).
std::filesystem::path held_out_file(const config::RunConfig& config);

// A part of the data. Training and validation wait for the first pairs, by which channels without statistics are normalised;
// validation without a stream reads the pairs of held_out_file(). A null stream is a ConfigError for training.
std::unique_ptr<Dataset> open_online(const config::RunConfig& config, Split split, const OnlineFacts& facts,
                                     const std::shared_ptr<PairStream>& stream);

}  // namespace welkin::data
