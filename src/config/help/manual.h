// SPDX-License-Identifier: Apache-2.0
// welkin(1), the manual page, in roff.
#pragma once

#include <string>

#include "config/help/option.h"

namespace welkin::config {

std::string manual(const ProgramHelp& program);

}  // namespace welkin::config
