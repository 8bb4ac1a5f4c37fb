// SPDX-License-Identifier: Apache-2.0
// The parts of a page, compiled in: page/ of this folder, and the library dygraphs from its Debian package
// (cmake/WelkinReportPage.cmake makes the source). Internal to the report.
#pragma once

#include <string_view>

namespace welkin::observe::page_parts {

std::string_view style();             // page/page.css
std::string_view script();            // page/*.js in their order
std::string_view dygraphs_style();    // dygraph.min.css
std::string_view dygraphs_script();   // dygraph.min.js
std::string_view dygraphs_licence();  // MIT

}  // namespace welkin::observe::page_parts
