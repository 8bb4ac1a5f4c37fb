// SPDX-License-Identifier: Apache-2.0
// Crops of a box of the universe: input and target channels over the same cells, cut and turned alike. Training crops are drawn
// from the sample's key; validation crops are a fixed, unaugmented cover of the box.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/datasets/box_array.h"
#include "data/sample/dataset.h"
#include "data/sample/orientation.h"
#include "data/sample/resident_arrays.h"

namespace welkin::data {

struct BoxOptions {
  std::string source{};            // names the data in errors: the path, or "synthetic"
  int64_t crop = 64;               // edge, cells
  int64_t num_samples = 1;         // in one epoch
  bool drawn = true;               // crops and orientations by the key's draw; false: the fixed cover
  std::array<bool, 3> periodic{};  // crops may wrap around the box along this axis
  Augmentation augmentation = Augmentation::Rotations;
  int64_t in_channels = 0, out_channels = 0;         // first channels of the boxes; 0 = all
  std::vector<std::string> in_names{}, out_names{};  // instead of the first ones: these, in this order
  std::vector<int64_t>
      input_vectors{};  // flat triples of channels that are components along axes 0, 1, 2: they turn with the box
  std::vector<int64_t> target_vectors{};
  std::vector<std::string> input_channels{}, target_channels{};  // names; numbered where empty
  std::vector<std::string> input_units{}, target_units{};
  std::vector<ChannelScaling> input_scaling{}, target_scaling{};  // of all channels of the boxes, or empty
  std::vector<double> input_clip{}, target_clip{};                // {low, high}
  std::vector<int64_t> input_log{}, target_log{};                 // channels that become log(1 + x)
  std::vector<std::string> warnings{};                            // for the log, about these boxes
  Missing missing = Missing::None;                                // of the boxes
  bool last_start = true;  // false: the last start of a crop is never drawn, as in the tutorials
};

class BoxDataset : public Dataset, public ResidentArrays {
 public:
  // DataError when the boxes differ, are smaller than the crop, or options do not fit them.
  BoxDataset(BoxArrayPtr input, BoxArrayPtr target, BoxOptions options);

  int64_t size() const override { return options_.num_samples; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override;
  void read(const SamplePlan& plan, SampleView out) const override;
  bool transforms() const override { return true; }
  bool turns() const override { return true; }
  const ResidentArrays* resident() const override { return this; }
  std::vector<std::string> warnings() const override;
  std::string location(const SamplePlan& plan) const override;
  uint64_t bytes_requested() const override;
  std::vector<FileFingerprint> fingerprints() const override;
  std::vector<ResidentArray> arrays() const override;  // input, target
  void read_plane(int64_t array, int64_t channel, int64_t index, std::span<float> out) const override;
  std::string plane_location(int64_t array, int64_t channel, int64_t index) const override;
  ResidentSample crops(const SamplePlan& plan) const override;
  // Cells along the axes of the whole box, and whether crops may wrap around each.
  const std::array<int64_t, 3>& extent() const { return input_.box->shape().extent; }
  const std::array<bool, 3>& periodic() const { return options_.periodic; }

 private:
  // For one orientation: the file's channel of each sample channel, and the channels that change their sign.
  struct ChannelTurn {
    std::vector<int64_t> from;
    std::vector<ChannelOp> turned;       // the signs alone
    std::vector<ChannelOp> transformed;  // with the sample's transform
  };
  struct Side {
    BoxArrayPtr box;
    int64_t channels = 0;
    std::vector<int64_t> of_box;     // for each channel of the sample, its channel in the box
    std::vector<ChannelTurn> turns;  // one per orientation
  };

  Side make_side(BoxArrayPtr box, const std::vector<int64_t>& of_box, const std::vector<int64_t>& vectors) const;
  static void add_transform(Side& side, const ArrayTransform& transform, const char* name);
  void check_boxes() const;
  std::array<int64_t, 3> num_starts() const;
  std::array<int64_t, 3> cover_origin(int64_t index) const;
  void read_side(const Side& side, const SamplePlan& plan, std::span<float> out, bool transformed) const;
  ResidentCrop crop_of(int64_t array, const SamplePlan& plan) const;

  BoxOptions options_;
  Side input_, target_;
  SampleSpec spec_;
};

// Crop `index` of `count` that cover a range of `starts` first cells with `tiles` crops side by side per axis: the first tiles^3
// are a regular cover, later rounds are shifted copies of it; a count below tiles^3 takes evenly spread tiles. Pure.
std::array<int64_t, 3> cover_crop(int64_t index, int64_t count, const std::array<int64_t, 3>& starts,
                                  const std::array<int64_t, 3>& tiles);

}  // namespace welkin::data
