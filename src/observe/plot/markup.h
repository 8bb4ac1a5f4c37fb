// SPDX-License-Identifier: Apache-2.0
// Text inside XML and HTML: every page and picture in markup (plots, reports, timelines) is escaped by this one function. It
// knows no element and no layout.
#pragma once

#include <string>
#include <string_view>

namespace welkin::observe {

// `words` (UTF-8) as element text or a quoted attribute: & < > " become entities. Control characters except tab are left out,
// since XML has no others.
std::string escaped_markup(std::string_view words);

// Encodes bytes by RFC 4648 with padding, for a data: address.
std::string base64(std::string_view bytes);

}  // namespace welkin::observe
