// SPDX-License-Identifier: Apache-2.0
#include "train/mosaic/mosaic_run.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/datasets/box_dataset.h"
#include "data/formats/array_writer.h"
#include "parallel/comm/collectives.h"
#include "train/evaluate/prediction_file.h"
#include "train/evaluate/sample_picture.h"
#include "train/mosaic/mosaic_axis.h"
#include "train/mosaic/mosaic_picture.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

const data::BoxDataset& boxes_of(const TrainedModel& model) {
  const auto* boxes = dynamic_cast<const data::BoxDataset*>(&model.dataset());
  if (boxes != nullptr) return *boxes;
  throw ConfigError("mosaic", cat("this model has no box: dataset=", model.config().data.dataset),
                    "A mosaic is made of crops of a box (dataset nbody)");
}

data::OutputFile mosaic_output(const data::SampleSpec& spec, const std::array<MosaicAxis, 3>& axes, bool is_zarr) {
  data::Attributes attributes{{"channels", spec.target.channels}, {"units", spec.target.units}};
  // As PredictionWriter has them: transform(x) in its unit = value * scale + offset.
  std::vector<data::ChannelScaling> scaling = spec.target.scaling;
  scaling.resize(spec.target.channels.size());
  std::vector<std::string> transforms;
  std::vector<double> offsets, scales;
  for (const data::ChannelScaling& channel : scaling)
    transforms.push_back(channel.transform), offsets.push_back(channel.offset), scales.push_back(channel.scale);
  attributes["transform"] = std::move(transforms), attributes["offset"] = std::move(offsets),
  attributes["scale"] = std::move(scales);
  data::OutputArray array{.name = "prediction",
                          .shape = {spec.target.shape[0], axes[0].extent(), axes[1].extent(), axes[2].extent()},
                          .chunk = {1, 1, axes[1].extent(), axes[2].extent()},
                          .dtype = Dtype::F32,
                          .codecs = {},
                          .axes = {"channel", "z", "y", "x"},
                          .attributes = std::move(attributes)};
  if (is_zarr)
    array.codecs = {{.kind = data::CodecKind::Blosc, .level = 5, .width = sizeof(float), .compressor = "zstd", .shuffle = 1}};
  data::OutputFile output;
  output.arrays.push_back(std::move(array));
  return output;
}

class Mosaic {
 public:
  Mosaic(const TrainedModel& model, const MosaicOptions& options, const std::array<MosaicAxis, 3>& axes)
      : model_(model), spec_(model.dataset().spec()), axes_(axes), channels_(spec_.target.shape[0]) {
    if (!model.is_first_of_replica()) return;
    const bool is_zarr = options.output.extension() == ".zarr";
    const data::OutputFile output = mosaic_output(spec_, axes_, is_zarr);
    const fs::path data = unfinished(options.output);
    writer_ = is_zarr ? data::make_zarr_writer(data, 2, output) : data::make_netcdf_writer(data, output);
  }

  static fs::path unfinished(const fs::path& output) { return fs::path(output).concat(".unfinished"); }

  // Planes [begin, end) of the first axis.
  void predict(int64_t begin, int64_t end, const std::function<void(int64_t, int64_t)>& progress) {
    std::set<int64_t> rows;
    for (int64_t plane = begin; plane < end; ++plane) {
      const auto crops = axes_[0].crops_at(plane);
      missing_[plane] = static_cast<int64_t>(crops.size());
      rows.insert(crops.begin(), crops.end());
    }
    const int64_t all = static_cast<int64_t>(rows.size()) * axes_[1].num_crops() * axes_[2].num_crops();
    int64_t done = 0;
    for (const int64_t row : rows) {
      for (int64_t j = 0; j < axes_[1].num_crops(); ++j) {
        for (int64_t k = 0; k < axes_[2].num_crops(); ++k) {
          const std::array<int64_t, 3> crop{row, j, k};
          const at::Tensor prediction = predict_crop(crop);
          if (writer_) add(crop, prediction.to(at::kDouble));
          progress(++done, all);
        }
      }
      if (writer_) finish_row(row);
    }
    WELKIN_CHECK(planes_.empty(), "every plane is written");
  }

  void finish() {
    if (writer_) writer_->finish();
  }

  // (C, y, x) as the files hold it, of the plane in the middle; undefined on ranks that do not have it.
  const at::Tensor& middle() const { return middle_; }

 private:
  // (C, s, s, s) in the files' values.
  at::Tensor predict_crop(const std::array<int64_t, 3>& crop) const {
    data::SamplePlan plan;
    for (size_t a = 0; a < 3; ++a) plan.origin[a] = axes_[a].first(crop[a]);
    plan.region = data::whole(spec_);
    const auto& shape = spec_.input.shape;
    at::Tensor input = at::empty({1, shape[0], shape[1], shape[2], shape[3]}, at::kFloat);
    model_.dataset().read(
        plan, {.input = {input.data_ptr<float>(), static_cast<size_t>(input.numel())}, .target = {}, .transformed = true});
    const at::Tensor none = at::zeros({1}, at::TensorOptions(at::kLong).device(model_.device()));
    const at::Tensor prediction =
        model_.predict(input.to(model_.device()), {.seed = model_.config().loop.seed, .step = none.select(0, 0), .sample = none});
    return in_file_units(prediction, data::target_transform(spec_)).select(0, 0);
  }

  at::Tensor weights(size_t axis, int64_t crop) const {
    std::vector<double> values;
    for (int64_t i = 0; i < axes_[axis].crop(); ++i) values.push_back(axes_[axis].weight(crop, i));
    return at::tensor(values, at::kDouble);
  }

  int64_t cell(size_t axis, int64_t crop, int64_t i) const { return (axes_[axis].first(crop) + i) % axes_[axis].extent(); }

  void add(const std::array<int64_t, 3>& crop, const at::Tensor& prediction) {
    const at::Tensor plane_weights = weights(1, crop[1]).unsqueeze(1) * weights(2, crop[2]).unsqueeze(0);
    for (int64_t i = 0; i < axes_[0].crop(); ++i) {
      const double share = axes_[0].weight(crop[0], i);
      const int64_t plane = cell(0, crop[0], i);
      if (share == 0 || !missing_.contains(plane)) continue;
      const auto found = planes_.find(plane);
      at::Tensor& sum =
          found != planes_.end()
              ? found->second
              : planes_.emplace(plane, at::zeros({channels_, axes_[1].extent(), axes_[2].extent()}, at::kDouble)).first->second;
      add_plane(sum, prediction.select(1, i) * plane_weights * share, crop);
    }
  }

  // Adds a plane in at most two parts along each axis: before the end of the box and, if it is periodic, behind it.
  void add_plane(const at::Tensor& sum, const at::Tensor& part, const std::array<int64_t, 3>& crop) const {
    const int64_t s = axes_[1].crop();
    for (int64_t y = 0; y < s;) {
      const int64_t to_y = cell(1, crop[1], y), rows = std::min(s - y, axes_[1].extent() - to_y);
      for (int64_t x = 0; x < s;) {
        const int64_t to_x = cell(2, crop[2], x), columns = std::min(s - x, axes_[2].extent() - to_x);
        sum.narrow(1, to_y, rows).narrow(2, to_x, columns).add_(part.narrow(1, y, rows).narrow(2, x, columns));
        x += columns;
      }
      y += rows;
    }
  }

  // All crops of the row are added: planes that wait for no other row are written.
  void finish_row(int64_t row) {
    for (int64_t i = 0; i < axes_[0].crop(); ++i) {
      const int64_t plane = cell(0, row, i);
      if (axes_[0].weight(row, i) == 0 || !missing_.contains(plane) || --missing_.at(plane) > 0) continue;
      const at::Tensor values = planes_.at(plane).to(at::kFloat).contiguous();
      const data::ArrayRegion region{{0, plane, 0, 0}, {channels_, plane + 1, axes_[1].extent(), axes_[2].extent()}};
      if (plane == axes_[0].extent() / 2) middle_ = values;
      writer_->write(0, region, std::as_bytes(std::span(values.const_data_ptr<float>(), static_cast<size_t>(values.numel()))));
      planes_.erase(plane);
    }
  }

  const TrainedModel& model_;
  const data::SampleSpec& spec_;
  std::array<MosaicAxis, 3> axes_;
  int64_t channels_;
  std::unique_ptr<data::ArrayWriter> writer_;  // on the first rank of a replica
  std::map<int64_t, int64_t> missing_;         // for each plane of this rank: rows of crops that are missing
  at::Tensor middle_;                          // (C, y, x) of the plane that is drawn, once it is written
  std::map<int64_t, at::Tensor> planes_;       // begun: (C, y, x) float64 sums
};

void check_mosaic_output(const fs::path& output) {
  if (output.extension() != ".zarr" && output.extension() != ".nc")
    throw ConfigError("mosaic", cat("not a known kind of file: output=", output.string()), "Name it .zarr or .nc");
  if (fs::exists(output))
    throw ConfigError("mosaic", cat("the output is there already: output=", output.string()), "Remove it, or name another");
}

}  // namespace

std::vector<fs::path> predict_mosaic(const TrainedModel& model, const MosaicOptions& options, const parallel::World& world,
                                     const std::function<void(int64_t, int64_t)>& progress) {
  const data::BoxDataset& boxes = boxes_of(model);
  const auto extent = boxes.extent();
  const auto periodic = boxes.periodic();
  const int64_t crop = model.config().data.data_size;
  const auto axis = [&](size_t a) { return MosaicAxis(extent[a], crop, options.overlap, periodic[a]); };
  const std::array<MosaicAxis, 3> axes{axis(0), axis(1), axis(2)};
  const data::SampleSpec& spec = boxes.spec();
  const std::vector<int64_t> channels = picture_channels(spec, options.channels);
  std::vector<fs::path> pictures;
  for (const int64_t channel : channels) {
    const std::string name = name_in_file(spec.target.channels[static_cast<size_t>(channel)]);
    pictures.push_back(options.output.parent_path() / cat(options.output.stem().string(), "_", name, ".png"));
  }
  const auto meet = [&] {
    if (world.size() > 1) parallel::barrier(world.world_group());
  };
  std::unique_ptr<Mosaic> mosaic;
  const fs::path unfinished = Mosaic::unfinished(options.output);
  if (world.is_main()) {
    check_mosaic_output(options.output);
    fs::remove_all(unfinished);
    mosaic = std::make_unique<Mosaic>(model, options, axes);
  }
  meet();
  if (!mosaic) mosaic = std::make_unique<Mosaic>(model, options, axes);
  const auto own = model.own_of(extent[0]);
  mosaic->predict(own.begin, own.end, progress);
  mosaic->finish();
  if (mosaic->middle().defined()) draw_mosaic_plane(model, extent[0] / 2, mosaic->middle(), channels, pictures);
  meet();
  if (world.is_main()) {
    fs::is_directory(unfinished) ? publish_folder(unfinished, options.output) : fs::rename(unfinished, options.output);
  }
  std::vector<fs::path> written{options.output};
  written.insert(written.end(), pictures.begin(), pictures.end());
  return written;
}

}  // namespace welkin::train
