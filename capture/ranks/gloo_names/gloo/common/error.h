// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See rendezvous/store.h.
#pragma once

#include "capture/ranks/gloo_names/gloo/rendezvous/store.h"
