// SPDX-License-Identifier: Apache-2.0
#include "data_readers.h"

#include <cstring>
#include <random>
#include <vector>

#include "core/file.h"
#include "core/process/host.h"
#include "core/stopwatch.h"
#include "data/datasets/box_dataset.h"
#include "data/datasets/era5_dataset.h"
#include "data/formats/array_file.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/pipeline/pipeline.h"
#include "data/storage/chunk_cache.h"

namespace welkin::bench {
namespace {

using namespace welkin::data;

class PipelineReader : public Reader {
 public:
  PipelineReader(std::unique_ptr<Dataset> dataset, const ReaderOptions& options)
      : dataset_(std::move(dataset)),
        pipeline_(*dataset_, Sampler(dataset_->size(), Order::Shuffled, 1),
                  {.global_batch = options.batch, .micro_batch = options.batch, .num_workers = options.workers}) {}

  Slice run(double seconds) override {
    const uint64_t requested = dataset_->bytes_requested();
    const int64_t read = pipeline_.samples_read();
    Slice slice;
    const uint64_t faults = page_faults();
    const Stopwatch watch;
    do {
      const Batch batch = pipeline_.next();
      slice.samples += batch.input.size(0);
      ++slice.batches;
      sample_bytes_ = (batch.input.nbytes() + batch.target.nbytes()) / static_cast<size_t>(batch.input.size(0));
    } while (watch.seconds() < seconds);
    slice.seconds = watch.seconds();
    slice.page_faults = page_faults() - faults;
    slice.requested_bytes = dataset_->bytes_requested() - requested;
    slice.delivered_bytes = static_cast<uint64_t>(pipeline_.samples_read() - read) * sample_bytes_;
    return slice;
  }

 private:
  std::unique_ptr<Dataset> dataset_;
  Pipeline pipeline_;
  size_t sample_bytes_ = 0;
};

class CopyLoop : public Reader {
 public:
  CopyLoop(const std::filesystem::path& path, const ReaderOptions& options) : crop_(options.crop), mapping_(path) {
    const Hdf5File file = Hdf5File::open(path);
    for (const char* name : {"Nbody", "Hydro"}) {
      const Hdf5Dataset facts = file.dataset(name);
      edge_ = facts.shape.at(3);
      boxes_.push_back({reinterpret_cast<const float*>(mapping_.bytes().data() + facts.offset.value()), facts.shape.at(0)});
      channels_ += facts.shape.at(0);
    }
    buffer_.resize(static_cast<size_t>(channels_ * crop_ * crop_ * crop_ * options.batch));
  }

  Slice run(double seconds) override {
    Slice slice;
    const Stopwatch watch;
    std::uniform_int_distribution<int64_t> start(0, edge_ - crop_);
    float* to = buffer_.data();
    do {
      const int64_t x = start(random_), y = start(random_), z = start(random_);
      for (const Box& box : boxes_) {
        for (int64_t c = 0; c < box.channels; ++c) {
          for (int64_t i = x; i < x + crop_; ++i) {
            for (int64_t j = y; j < y + crop_; ++j, to += crop_) {
              std::memcpy(to, box.values + ((c * edge_ + i) * edge_ + j) * edge_ + z, static_cast<size_t>(crop_) * sizeof(float));
            }
          }
        }
      }
      if (to == buffer_.data() + buffer_.size()) to = buffer_.data();
      ++slice.samples;
    } while (watch.seconds() < seconds);
    slice.seconds = watch.seconds();
    slice.delivered_bytes = slice.requested_bytes =
        static_cast<uint64_t>(slice.samples * channels_ * crop_ * crop_ * crop_) * sizeof(float);
    return slice;
  }

 private:
  struct Box {
    const float* values;
    int64_t channels;
  };
  int64_t crop_, edge_ = 0, channels_ = 0;
  MappedFile mapping_;
  std::vector<Box> boxes_;
  std::vector<float> buffer_;  // as many samples as our ring's batch, so that both write to as much memory
  std::mt19937_64 random_{1};
};

}  // namespace

std::unique_ptr<Reader> open_box_reader(const std::filesystem::path& path, const ReaderOptions& options) {
  BoxOptions box{.source = path.string(), .crop = options.crop, .num_samples = 1 << 20};
  box.augmentation = options.turns ? Augmentation::Rotations : Augmentation::None;
  const bool is_folder = std::filesystem::is_directory(path);
  const auto cache = std::make_shared<ChunkCache>(options.cached ? kChunkCacheBytes : 0);
  const ArrayFile first = open_array_file(is_folder ? path / "data.npy" : path, cache),
                  second = is_folder ? open_array_file(path / "label.npy") : first;
  const ChannelAxis axis = is_folder ? ChannelAxis::Last : ChannelAxis::First;
  BoxArrayPtr input = open_box(first, "Nbody", axis), target = open_box(second, "Hydro", axis);
  return std::make_unique<PipelineReader>(std::make_unique<BoxDataset>(std::move(input), std::move(target), box), options);
}

std::unique_ptr<Reader> open_pair_reader(const std::filesystem::path& folder, const ReaderOptions& options) {
  Era5Options years{.folder = folder, .means = folder / "means.npy", .stds = folder / "stds.npy"};
  return std::make_unique<PipelineReader>(std::make_unique<Era5Dataset>(std::move(years)), options);
}

std::unique_ptr<Reader> open_copy_loop(const std::filesystem::path& path, const ReaderOptions& options) {
  return std::make_unique<CopyLoop>(path, options);
}

}  // namespace welkin::bench
