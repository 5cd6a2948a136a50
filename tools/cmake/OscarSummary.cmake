# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
message(STATUS "oscar ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, sanitizers ${OSCAR_SANITIZE}")
message(STATUS "  LibTorch ${LibTorch_VERSION} at ${LibTorch_ROOT} (CUDA libraries: ${LibTorch_CUDA})")
message(STATUS "  CUDA toolkit code: ${OSCAR_CUDA_ENABLED} (${OSCAR_CUDA_REASON})")
