// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/page.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/text.h"

namespace welkin::launch {
namespace {

struct Colour {
  Verdict verdict;
  std::string_view name, escape;
};
constexpr std::array kColours{Colour{Verdict::Good, "green", "\033[32m"}, Colour{Verdict::Doubtful, "amber", "\033[33m"},
                              Colour{Verdict::Bad, "red", "\033[31m"}};
constexpr size_t kTopicColumn = 8, kFoundColumn = 24, kWidth = 100;

const Colour& colour_of(Verdict verdict) { return kColours[static_cast<size_t>(verdict)]; }

}  // namespace

std::string page_text(const Findings& findings, bool in_colour) {
  std::string text;
  for (const Finding& finding : findings) {
    const Colour& colour = colour_of(finding.verdict);
    const std::string blanks(kTopicColumn - colour.name.size(), ' ');
    std::string topic = finding.topic + " ";
    topic.resize(std::max(topic.size(), kFoundColumn - kTopicColumn), ' ');
    text += cat(in_colour ? colour.escape : "", colour.name, in_colour ? "\033[0m" : "", blanks, topic,
                wrapped(finding.found, kWidth, kFoundColumn), "\n");
    if (!finding.remedy.empty())
      text += cat(std::string(kFoundColumn, ' '), "-> ", wrapped(finding.remedy, kWidth, kFoundColumn + 3), "\n");
  }
  const auto count = [&](Verdict verdict) {
    return std::count_if(findings.begin(), findings.end(), [&](const Finding& one) { return one.verdict == verdict; });
  };
  return cat(text, count(Verdict::Good), " green, ", count(Verdict::Doubtful), " amber, ", count(Verdict::Bad), " red\n");
}

std::string page_json(const Findings& findings) {
  nlohmann::ordered_json page = {{"verdict", colour_of(worst(findings)).name}, {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : findings) {
    page["findings"].push_back({{"topic", finding.topic},
                                {"verdict", colour_of(finding.verdict).name},
                                {"found", finding.found},
                                {"remedy", finding.remedy}});
  }
  return page.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Findings findings_of(std::string_view json) {
  const nlohmann::json page = nlohmann::json::parse(json, nullptr, false);
  Findings findings;
  if (!page.is_object() || !page.contains("findings") || !page["findings"].is_array()) return findings;
  try {
    for (const nlohmann::json& row : page["findings"]) {
      const auto name = row.at("verdict").get<std::string>();
      const auto* colour = std::find_if(kColours.begin(), kColours.end(), [&](const Colour& one) { return one.name == name; });
      if (colour == kColours.end()) return {};
      findings.push_back({row.at("topic").get<std::string>(), colour->verdict, row.at("found").get<std::string>(),
                          row.at("remedy").get<std::string>()});
    }
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return findings;
}

Verdict worst(const Findings& findings) {
  Verdict verdict = Verdict::Good;
  for (const Finding& finding : findings) verdict = std::max(verdict, finding.verdict);
  return verdict;
}

}  // namespace welkin::launch
