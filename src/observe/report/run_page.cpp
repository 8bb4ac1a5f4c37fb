// SPDX-License-Identifier: Apache-2.0
// The HTML page: styles, scripts and data in one file. Texts from files are only in the data, and the script inserts them
// as text. The page's content security policy forbids loading anything, and running scripts without the nonce of this page.
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "core/text.h"
#include "observe/plot/markup.h"
#include "observe/report/page_data.h"
#include "observe/report/page_parts.h"
#include "observe/report/run_report.h"

namespace welkin::observe {
namespace {

std::string random_nonce() {
  constexpr int kWords = 4;
  std::random_device source;
  std::string bytes;
  for (int i = 0; i < kWords; ++i) {
    const uint32_t word = source();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return base64(bytes);
}

// Browser tools would request the source map of a minified file.
std::string_view without_source_map(std::string_view text) { return text.substr(0, text.rfind("//# sourceMappingURL")); }
std::string_view without_style_map(std::string_view text) { return text.substr(0, text.rfind("/*# sourceMappingURL")); }

// Escapes text, with a line break for each line end.
std::string escaped_lines(std::string_view text) {
  std::string out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) out += cat(escaped_markup(line), "\n");
  return out;
}

std::string policy(const std::string& nonce) {
  return cat("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-", nonce,
             "'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n");
}

}  // namespace

std::string comparison_html(const RunComparison& comparison, const std::vector<RunHistory>& runs, const PageOptions& options) {
  const std::string nonce = random_nonce();
  const auto script = [&](std::string_view text) { return cat("<script nonce=\"", nonce, "\">\n", text, "\n</script>\n"); };
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n", policy(nonce),
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>",
      escaped_markup(options.title), "</title>\n<style>\n", without_style_map(page_parts::dygraphs_style()), "\n",
      page_parts::style(),
      "</style></head>\n<body>\n<noscript>This page needs JavaScript to draw its curves; it loads "
      "nothing.</noscript>\n<main id=\"page\"></main>\n<details class=\"licences\"><summary>Licences</summary><p>This page "
      "is made by Welkin (Apache License 2.0) and holds dygraphs:</p><pre>",
      escaped_lines(page_parts::dygraphs_licence()),
      "</pre></details>\n<script type=\"application/json\" id=\"data\" "
      "data-live=\"",
      escaped_markup(options.live_file), "\">", page_data(comparison, runs, options), "</script>\n",
      script(without_source_map(page_parts::dygraphs_script())), script(page_parts::script()), "</body></html>\n");
}

std::string live_script(const RunComparison& comparison, const std::vector<RunHistory>& runs, const PageOptions& options) {
  // Parsed as JSON, like the page's own data: in an object literal the tag "__proto__" would set the prototype.
  const nlohmann::json text = page_data(comparison, runs, options);
  return cat("welkinUpdate(JSON.parse(", text.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), "));\n");
}

}  // namespace welkin::observe
