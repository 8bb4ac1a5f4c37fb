// SPDX-License-Identifier: Apache-2.0
// Pairs of times from a folder of yearly files (field_file.h): input = one or more consecutive steps and computed channels,
// target = the step `lead` later. Named after the tutorials' data; any folder of that layout will do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/datasets/channel_statistics.h"
#include "data/datasets/era5_options.h"
#include "data/datasets/field_file.h"
#include "data/datasets/field_selection.h"
#include "data/sample/channels/extra_channels.h"
#include "data/sample/dataset.h"
#include "data/sample/field_pairs.h"
#include "data/sample/resident_arrays.h"

namespace welkin::data {

// Facts that the files of a folder share. Extra channels are made from them before the data set exists.
struct GridFacts {
  std::vector<double> latitude, longitude;  // of the crop; empty when the files do not say
  std::string calendar;
};
GridFacts read_grid_facts(const Era5Options& options);

class Era5Dataset : public Dataset, public ResidentArrays {
 public:
  // `extra` (may be null) is evaluated at the target's time. DataError names the file that does not fit.
  explicit Era5Dataset(Era5Options options, std::shared_ptr<const ExtraChannels> extra = nullptr);

  int64_t size() const override;
  const SampleSpec& spec() const override { return spec_; }
  // Tutorial rules: throws DataError for an index that points beyond the end of its file.
  SamplePlan plan(SampleKey key, const Region& wanted) const override;
  void read(const SamplePlan& plan, SampleView out) const override;
  // One target channel of the whole sample as the file holds it, (H, W).
  void read_target(const SamplePlan& plan, int64_t channel, std::span<float> out) const;
  // One input channel of the newest step, counted within the step, as the file holds it.
  void read_input(const SamplePlan& plan, int64_t channel, std::span<float> out) const;
  // The role of such a channel, and whether it is a mask of others (attribute mask_of).
  ChannelRole role_of_input(int64_t channel) const;
  bool is_mask(int64_t channel) const;
  // True if the files have this target channel; Era5Options::like may name others.
  bool has_target(int64_t channel) const { return files_.front()->has_channel(selection_.target[static_cast<size_t>(channel)]); }
  int64_t channels_of_step() const { return options_.in_channels; }  // of the files, in the input
  std::optional<int64_t> following(int64_t index) const override;
  std::vector<std::string> describe() const override;  // the tutorials' lines
  std::vector<std::string> warnings() const override;
  std::vector<std::string> notes() const override;
  bool transforms() const override { return true; }
  std::string location(const SamplePlan& plan) const override;
  uint64_t bytes_requested() const override;
  std::vector<FileFingerprint> fingerprints() const override;

  // All steps of all files, one after the other. Null where channels are computed for each sample, or static.
  const ResidentArrays* resident() const override { return extras_.empty() ? this : nullptr; }
  std::vector<ResidentArray> arrays() const override;
  void read_plane(int64_t array, int64_t channel, int64_t index, std::span<float> out) const override;
  std::string plane_location(int64_t array, int64_t channel, int64_t index) const override;
  ResidentSample crops(const SamplePlan& plan) const override;
  const FieldFacts& file(int64_t index) const { return files_[static_cast<size_t>(index)]->facts(); }
  int64_t num_files() const { return static_cast<int64_t>(files_.size()); }

 private:
  void open_files();
  void check_files();
  void check_inputs_are_here() const;
  void check_statics_stay() const;
  void hold_files();
  void make_spec();
  void add_input_spec(const std::vector<std::string>& names, const std::vector<std::string>& units);
  void add_statistics(const std::vector<std::string>& names);
  void add_spread();
  void add_normalization(const std::vector<int64_t>& channels, std::vector<double>& mean, std::vector<double>& std) const;
  void add_earlier_target();
  void add_known_input();
  void make_ops();
  void add_fill();
  int64_t first_extra() const { return options_.history * options_.in_channels; }  // input channel behind those of the file
  bool shares_channels() const;                                                    // one held array serves input and target
  const std::vector<int64_t>& held_channels(int64_t array) const;                  // of the files
  std::vector<double> held_mean(int64_t array) const;
  void read_around(const FieldFile& file, int64_t step, const std::vector<ChannelRun>& runs, const FieldWindow& window,
                   std::span<float> out, const ChannelOp* ops) const;
  void read_step(const FieldFile& file, int64_t step, const std::vector<ChannelRun>& runs, const FieldWindow& window,
                 std::span<float> out, const ChannelOp* ops) const;
  struct FilePlace {
    size_t file = 0;
    int64_t step = 0;
  };
  FilePlace place_of(int64_t step) const;  // of a step among those of all files
  void fill_extra(const SamplePlan& plan, std::span<float> out, bool transformed) const;

  Era5Options options_;
  std::shared_ptr<const StaticChannels> statics_;             // of the files; null where they have none
  std::vector<std::shared_ptr<const ExtraChannels>> extras_;  // statics_ and the computed ones, in the order of the input
  std::vector<std::unique_ptr<FieldFile>> files_;
  std::vector<std::filesystem::path> paths_;  // on the disk
  FieldSelection selection_;
  std::vector<ChannelRun> input_runs_, target_runs_;  // of selection_
  std::vector<int64_t> first_step_;                   // of every file among the steps of all, and their number
  std::optional<FieldPairs> pairs_;
  SampleSpec spec_;
  ChannelStatistics statistics_;                   // of the file's channels; empty where there are none
  std::vector<Normalization> normalizations_;      // the same
  std::vector<ChannelOp> input_ops_, target_ops_;  // one per channel; empty where nothing is transformed
};

}  // namespace welkin::data
