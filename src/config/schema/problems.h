// SPDX-License-Identifier: Apache-2.0
// The problems of a configuration, collected so that a user sees all of them at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace welkin::config {

class Problems {
 public:
  // `where` is the place ("config/UNet.yaml:12", "--num_epochs"; empty when there is none), `what` and `remedy` as in
  // core/error.h.
  void add(std::string_view where, std::string_view what, std::string_view remedy);
  // True when further problems are only counted: a file with so many is not worth a search for nearest names.
  bool full() const { return found_.size() >= kShown; }
  // Throws one ConfigError for all of them.
  void throw_if_any() const;

 private:
  struct Problem {
    std::string what;
    std::string remedy;
  };
  static constexpr size_t kShown = 20;
  std::vector<Problem> found_;
  size_t more_ = 0;
};

}  // namespace welkin::config
