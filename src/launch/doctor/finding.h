// SPDX-License-Identifier: Apache-2.0
// A finding of `welkin doctor`: one line of its page. No torch.
#pragma once

#include <string>
#include <vector>

namespace welkin::launch {

enum class Verdict { Good, Doubtful, Bad };  // green, amber, red

struct Finding {
  std::string topic;  // "memory", one word or two
  Verdict verdict = Verdict::Good;
  std::string found;   // the fact, with its values
  std::string remedy;  // what to do about it; empty where it is good
};
using Findings = std::vector<Finding>;

// A finding that is doubtful or bad if `is_wrong`, else good and without its remedy.
inline Finding judged(std::string topic, std::string found, bool is_wrong, Verdict verdict, std::string remedy) {
  return {std::move(topic), is_wrong ? verdict : Verdict::Good, std::move(found), is_wrong ? std::move(remedy) : ""};
}

}  // namespace welkin::launch
