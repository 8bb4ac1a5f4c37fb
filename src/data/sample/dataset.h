// SPDX-License-Identifier: Apache-2.0
// The interface of a data set: a number of samples, each an input and a target array of float32 that is planned (pure) and then
// read. A data set knows files and geometry; it knows no rank, no device and no batch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/channel_op.h"
#include "data/storage/fingerprint.h"

namespace welkin::data {

// One sample at one time of the run. `draw` keys every random choice made for it (crop, orientation): f(seed, epoch, position).
// In validation `draw` does not depend on the epoch.
struct SampleKey {
  int64_t index = 0;
  uint64_t draw = 0;
};

// A range of the sample's spatial dims (h, w for fields; d, h, w for boxes, unused trailing dims 0..1), in the sample's own
// orientation.
struct Region {
  std::array<int64_t, 3> begin{0, 0, 0};
  std::array<int64_t, 3> extent{1, 1, 1};
};

// The scaling of a file's values by welkin data ingest --box: stored = (transform(x) - offset) / scale.
struct ChannelScaling {
  std::string transform = "identity";  // or "log10"
  double offset = 0, scale = 1;
};

struct ArraySpec {
  std::vector<std::string> channels;      // names, size C
  std::vector<std::string> units;         // size C, empty strings where unknown; of transform(x) where there is a scaling
  std::vector<int64_t> shape;             // (C, H, W) or (C, D, H, W)
  std::vector<ChannelScaling> scaling{};  // size C; empty: the file holds values in their unit
};

enum class Geometry { Plane, Sphere, PeriodicBox };

struct SampleSpec {
  ArraySpec input;
  ArraySpec target;
  Geometry geometry = Geometry::Plane;
  std::vector<double> latitude;   // degrees, size H; empty when the file does not say
  std::vector<double> longitude;  // degrees, size W
  // Size C each; the device transform applies (x - mean) / std, each of the two steps rounded to float32. Empty = already scaled.
  std::vector<double> input_mean, input_std;
  std::vector<double> target_mean, target_std;
  // Standard deviation of each input channel over the training data, after the transforms: noise amplitudes are fractions of
  // it. 1 where it is not known. Empty: 1 for all.
  std::vector<double> input_spread;
  // Values are clipped to {low, high} before that, and these channels then become log(1 + x / eps). Empty: no clip, no
  // logarithm, and eps 1.
  std::vector<double> input_clip, target_clip;
  std::vector<int64_t> input_log, target_log;
  std::vector<double> input_log_eps, target_log_eps;
  // Flat triples of channels that are the components of a vector along axes 0, 1, 2: they turn with a box.
  std::vector<int64_t> input_vectors, target_vectors;
  // The value of input points without a value under NanPolicy::Hole, by channel, after the transforms. Empty: 0, the mean.
  std::vector<double> input_fill;
  std::string calendar{};    // of the times; empty when the files do not say times
  double lead_hours = 0;     // from the newest input to the target; 0 where there is no such time, or the files do not say
  bool has_missing = false;  // values of the files may be missing: those are NaN when read
  bool has_holes = false;    // files say that such points are to have no weight
  int64_t newest_input_channel = 0;  // first input channel of the newest time step (persistence, residual prediction)
  // For each target channel the input channel of the newest step that is the same quantity, -1 where there is none. Empty: those
  // from newest_input_channel on.
  std::vector<int64_t> earlier_target;
  // Input channels of the newest step, and those that follow it, whose values are known of any time (forcing, static, computed):
  // a rollout takes them from the data. Empty: those behind as many as there are targets.
  std::vector<int64_t> known_input;
  // Place of the target in the files' grid and channels, for maps beside them: first row and column, and channels
  // (empty: the first ones).
  std::array<int64_t, 2> first_cell{0, 0};
  int64_t columns_around = 0;  // of that grid, where the target goes beyond the last one and on from the first; else 0
  std::vector<int64_t> target_of_file;
};

// The bytes of a sample, and how they are turned. Pure data: two equal plans read the same values.
struct SamplePlan {
  int64_t index = 0;
  int32_t part = 0;                        // number of the data set in a mixture
  int32_t file = 0;                        // number of the data set's file
  int64_t time = 0;                        // newest input step in that file (fields)
  std::array<int64_t, 3> origin{0, 0, 0};  // first cell of the crop in the file (boxes)
  int32_t orientation = 0;                 // index into the table of data/sample/orientation.h; 0 is the identity
  Region region;                           // the wanted part of the sample
};

// Memory for a sample: row-major (C, region extent), owned by the caller. Empty: not wanted.
struct SampleView {
  std::span<float> input;
  std::span<float> target;
  bool transformed = false;  // clipped, logarithms taken, normalised; only for data sets that transforms() says it of
  bool turned = true;        // false: as it lies in the file, for a device to turn; only whole samples of data sets that turn()
};

// True if two units may be the same: "m s**-1" is "m s-1", and an empty one may be any.
bool may_be_same_unit(std::string_view a, std::string_view b);

// The line of a log for files that declare missing values.
std::string missing_line();

class ResidentArrays;

// Thread-safe after construction. `read` throws DataError naming file, dataset and offset.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual const SampleSpec& spec() const = 0;
  virtual SamplePlan plan(SampleKey key, const Region& wanted) const = 0;
  virtual void read(const SamplePlan& plan, SampleView out) const = 0;
  // The sample whose newest input is this sample's target. The next step of a rollout is compared with it and takes its
  // computed channels. Nullopt where there is none, or where samples have no order in time.
  virtual std::optional<int64_t> following(int64_t /*index*/) const { return {}; }
  // The same data as samples of `steps` steps each, from starts that have `longest` steps of truth: for one `longest`, all
  // values of `steps` have the same samples in the same order. This outlives it. Throws as sequence_starts() (sequences.h).
  virtual std::unique_ptr<Dataset> of_steps(int64_t steps, int64_t longest) const;
  // Lines for a run's log about the data when it opens. A data set logs nothing itself.
  virtual std::vector<std::string> describe() const { return {}; }
  // Warnings, a line each: data left out though no key says so, assumptions, and keys that the files contradict.
  virtual std::vector<std::string> warnings() const { return {}; }
  // Assumptions about files that are known to say little, a line each: nothing is wrong with them.
  virtual std::vector<std::string> notes() const { return {}; }
  // True if read() can write transformed values, in the pass that reads them. Else the caller transforms.
  virtual bool transforms() const { return false; }
  // True if samples have an orientation, and read() can leave it to the caller to turn them.
  virtual bool turns() const { return false; }
  // The arrays of data that can be held on a device (resident_arrays.h); null for others.
  virtual const ResidentArrays* resident() const { return nullptr; }
  // The data of a plan, for messages: "path=..., step=...".
  virtual std::string location(const SamplePlan& plan) const;
  // Bytes that read() has asked of files so far. Far more than it delivered means a poor file layout. 0: nothing is counted.
  virtual uint64_t bytes_requested() const { return 0; }
  // Fingerprints of every file, in a fixed order; reads a little of each. Empty: the samples come from no file.
  virtual std::vector<FileFingerprint> fingerprints() const { return {}; }
};

// The warnings, or notes, of several data sets; equal ones appear once.
std::vector<std::string> warnings_of(const std::vector<const Dataset*>& datasets);
std::vector<std::string> notes_of(const std::vector<const Dataset*>& datasets);

// The transforms of a specification, as the data sets and the pipeline apply them.
ArrayTransform input_transform(const SampleSpec& spec);
ArrayTransform target_transform(const SampleSpec& spec);

// The whole of a sample of this specification.
Region whole(const SampleSpec& spec);

}  // namespace welkin::data
