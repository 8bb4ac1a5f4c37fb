// SPDX-License-Identifier: Apache-2.0
// What most unit tests of layers with torch include, precompiled as torch_headers.h is.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch_headers.h"
