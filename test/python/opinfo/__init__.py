"""Compares each op that kpkg covers with PyTorch's op in float64 on OpInfo samples, on any device.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
