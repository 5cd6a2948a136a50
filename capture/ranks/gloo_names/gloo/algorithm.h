// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Declarations of Gloo that rendezvous/store.h says why are here.
#pragma once

#include "capture/ranks/gloo_names/gloo/rendezvous/store.h"
