// SPDX-License-Identifier: Apache-2.0
// The model of tied_model.h as a plug-in, for tests of the program.
#include "tied_model.h"

extern "C" void welkin_register(welkin::train::Registries& registries) { welkin::tests::add_tied_model(registries); }
