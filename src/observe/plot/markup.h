// SPDX-License-Identifier: Apache-2.0
// Words inside XML and HTML: every page and picture as text (plots, reports, timelines) escapes through this one function. It
// knows no element and no layout.
#pragma once

#include <string>
#include <string_view>

namespace welkin::observe {

// `words` (UTF-8) as element text or a quoted attribute: & < > " become entities, control characters but tab are left out, since
// XML has no others.
std::string escaped_markup(std::string_view words);

// RFC 4648, with padding: bytes inside a data: address.
std::string base64(std::string_view bytes);

}  // namespace welkin::observe
