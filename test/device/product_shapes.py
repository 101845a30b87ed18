"""Defines the shapes m, n, k of the matrix products that the scripts in this folder time.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

LARGE = [
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 8192, 1024),
    (8192, 8192, 512),
    (4096, 14336, 4096),
    (5632, 3072, 8192),
    (2048, 2048, 2048),
    (4096, 24576, 1536),
    (4096, 7168, 16384),
    (4096, 4096, 7168),
    (4096, 7168, 2048),
    (4096, 2112, 7168),
]
MEDIUM = [(1024, 1024, 1024), (512, 512, 512)]
ODD = [(5000, 3000, 1111), (4000, 4100, 4224), (1111, 2222, 3333)]
#: Columns and depth of weights for products with few rows.
WEIGHTS = [(4096, 4096), (8192, 8192), (14336, 4096), (57344, 7168)]
#: Number of products, m, n, k.
BATCHED = [(16, 1024, 1024, 1024), (64, 512, 512, 512), (256, 128, 128, 64), (32, 2048, 2048, 128)]
