// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/flags.h"

#include <charconv>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

// Extracts "bench" from "welkin bench".
std::string_view verb_of(const config::CommandLine& line) {
  const std::string_view program = line.program;
  return program.substr(program.find(' ') == std::string_view::npos ? 0 : program.find(' ') + 1);
}

template <typename T>
T value_of(const config::CommandLine& line, const std::string& name, T otherwise, T least, T most) {
  const auto found = line.extra.find(name);
  if (found == line.extra.end()) return otherwise;
  const std::string& text = found->second;
  const char* const end = text.data() + text.size();
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && value >= least && value <= most) return value;
  throw ConfigError(verb_of(line), cat("not a usable number: --", name, "=", text),
                    cat("Give a ", std::is_integral_v<T> ? "whole " : "", "number from ", least, " to ", most));
}

}  // namespace

int64_t whole_flag(const config::CommandLine& line, const std::string& name, int64_t otherwise, int64_t least, int64_t most) {
  return value_of(line, name, otherwise, least, most);
}

double number_flag(const config::CommandLine& line, const std::string& name, double otherwise, double least, double most) {
  return value_of(line, name, otherwise, least, most);
}

std::string text_flag(const config::CommandLine& line, const std::string& name, const std::string& otherwise) {
  const auto found = line.extra.find(name);
  return found == line.extra.end() || found->second.empty() ? otherwise : found->second;
}

bool has_flag(const config::CommandLine& line, const std::string& name) {
  const auto found = line.extra.find(name);
  return found != line.extra.end() && found->second != "false";
}

}  // namespace welkin::apps
