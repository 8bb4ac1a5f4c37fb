// SPDX-License-Identifier: Apache-2.0
// The states of a folder of fields as samples without a target: what a forecast begins with. A sample is the input of the model
// at one time, `history` steps of it; its computed channels are those of the time that the first step predicts. The files may end
// there: no truth is needed. Forcing channels of later times come from these files, or from others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "data/datasets/era5_dataset.h"
#include "data/datasets/open.h"
#include "data/forecast/time_step.h"
#include "data/sample/channels/forcing.h"

namespace welkin::data {

class FieldStates final : public Dataset {
 public:
  // `folder` instead of that of the split, where it is not empty. `step`: of the files' times, for files that hold one; months
  // are those of the training files.
  // `forcings`: a folder whose files hold the forcing channels; empty: those of the states do. DataError for files without times,
  // and for another grid or calendar than that of the training files; ConfigError for data that are no fields in time, and for an
  // unknown step.
  FieldStates(const config::RunConfig& config, Split split, const std::string& folder, const std::optional<TimeStep>& step,
              const std::string& forcings = "");

  int64_t size() const override { return static_cast<int64_t>(times_.size()); }
  // The same channels, normalisation and grid as in the data set of the run.
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override { return states_->plan(key, wanted); }
  void read(const SamplePlan& plan, SampleView out) const override;
  bool transforms() const override { return true; }
  std::vector<std::string> warnings() const override { return states_->warnings(); }
  std::vector<std::string> notes() const override { return states_->notes(); }
  std::string location(const SamplePlan& plan) const override { return states_->location(plan); }

  Calendar calendar() const { return calendar_; }
  const TimeStep& step() const { return step_; }                // of the files; a forecast's is config.data.dt of them
  const std::vector<int64_t>& times() const { return times_; }  // ascending, seconds
  // The sample of that time; nothing where there is none.
  std::optional<int64_t> index_of(int64_t seconds) const;
  // `leads` steps of the forecast after a time.
  int64_t valid_time(int64_t seconds, int64_t leads) const { return stepped(step_, calendar_, seconds, leads * lead_); }

  // True if the files have a target channel: those of a folder of states may lack channels that are only predicted.
  bool has_truth(int64_t channel) const { return states_->has_target(channel); }
  // DataError, naming it, where a target channel is not in the files.
  void need_truth(const std::string& purpose) const;
  // One target channel of a state as the files hold it, (H, W): the truth of a forecast.
  void read_truth(int64_t index, int64_t channel, std::span<float> out) const;

  int64_t state_channels() const { return states_->channels_of_step(); }  // of one time: neither static nor computed ones
  // What an input at a time has in channels that are known in advance, (K, H, W) in the order of spec().known_input, normalised
  // and without holes: forcing channels of that time, static ones, and computed ones of the time after it. Those of kept_known()
  // are 0. DataError where no file has forcing of that time.
  void fill_known(int64_t seconds, std::span<float> out) const;
  // Throws that error where fill_known() would.
  void need_forcing(int64_t seconds) const;
  bool has_forcing(int64_t seconds) const;
  // Places in spec().known_input of masks of points with a value: a forecast has holes where its start has them, so that its
  // masks are those of its start.
  const std::vector<size_t>& kept_known() const { return kept_; }
  bool has_holes() const { return has_holes_; }  // points may have no value

 private:
  void find_times(const std::string& folder);
  void find_step(const config::RunConfig& config, const std::optional<TimeStep>& given);
  void add_computed(const config::RunConfig& config);
  void find_known(const config::RunConfig& config, const std::string& forcings);
  void open_forcings(const config::RunConfig& config, const std::string& folder);
  // A channel of a state that is known in advance. Read at each time, unless it is `fixed` or a mask.
  struct Known {
    int64_t channel = 0;          // of a state
    std::optional<ChannelOp> op;  // nothing: it is not transformed
    std::vector<float> fixed;     // (H, W) of a static one, normalised and without holes
    bool is_mask = false;

    bool is_read() const { return fixed.empty() && !is_mask; }
  };
  const std::string& channel_name(const Known& known) const;
  // Reads a known channel at a time of the data set's samples: normalised, without holes.
  void read_known(const Era5Dataset& files, const SamplePlan& plan, int64_t channel, const Known& known,
                  std::span<float> out) const;
  void find_fixed();
  int64_t num_computed() const { return computed_ ? computed_->count() : 0; }
  // Computed channels at a time, (num_computed, H, W), normalised as an input is.
  void fill_computed(int64_t seconds, std::span<float> out) const;
  void read_forcing(int64_t seconds, std::span<float> out) const;

  int64_t lead_;
  std::unique_ptr<Era5Dataset> states_;
  std::unique_ptr<ForcingChannels> computed_;  // null: none
  std::vector<ChannelOp> computed_ops_;        // one per computed channel; empty: none
  std::vector<Known> known_;                   // in the order of spec_.known_input, which goes on with statics_ and computed ones
  std::vector<size_t> kept_;                   // masks among them
  std::vector<float> statics_;                 // (S, H, W), normalised
  std::unique_ptr<Era5Dataset> forcings_;      // of those of known_ that are read alone; null: the states have them
  std::map<int64_t, int64_t> forcing_times_;   // of them, and their samples
  bool has_holes_ = false;                     // points may have no value
  std::vector<int64_t> times_;
  Calendar calendar_ = Calendar::ProlepticGregorian;
  TimeStep step_;
  SampleSpec spec_;
};

}  // namespace welkin::data
