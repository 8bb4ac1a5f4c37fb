// SPDX-License-Identifier: Apache-2.0
// A data set that has only a specification, for a model that is called with fields of others.
#pragma once

#include <string>
#include <utility>

#include "core/error.h"
#include "data/sample/dataset.h"

namespace welkin::train::interchange {

class StatedData : public data::Dataset {
 public:
  // `why` and `remedy` are the text of read()'s error.
  StatedData(data::SampleSpec spec, std::string why, std::string remedy)
      : spec_(std::move(spec)), why_(std::move(why)), remedy_(std::move(remedy)) {}

  int64_t size() const override { return 1; }
  const data::SampleSpec& spec() const override { return spec_; }
  data::SamplePlan plan(data::SampleKey key, const data::Region& wanted) const override {
    return {.index = key.index, .region = wanted};
  }
  void read(const data::SamplePlan& /*plan*/, data::SampleView /*out*/) const override { throw DataError("data", why_, remedy_); }

 private:
  data::SampleSpec spec_;
  std::string why_, remedy_;
};

}  // namespace welkin::train::interchange
