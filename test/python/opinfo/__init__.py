"""PyTorch's OpInfo samples of each op that kpkg covers, on any device, against PyTorch's op in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
