// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gloo declarations; rendezvous/store.h explains why they are needed.
#pragma once

#include "capture/ranks/gloo_names/gloo/rendezvous/store.h"
