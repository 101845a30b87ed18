"""Names the folders of what C++ projects build against: headers, and the files of CMake and of pkg-config.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent  # the links of a build tree lead elsewhere, and this path does not follow them


def get_include() -> str:
    """Returns the folder of the headers of C and C++, for ``-I``."""
    return str(_PACKAGE / "include")


def get_cmake_dir() -> str:
    """Returns the folder that ``find_package(kpkg CONFIG)`` of CMake takes as ``kpkg_DIR``."""
    return str(_PACKAGE / "cmake")


def get_pkgconfig_dir() -> str:
    """Returns the folder of ``kpkg.pc``, for ``PKG_CONFIG_PATH``."""
    return str(_PACKAGE / "pkgconfig")


#: The options of ``python -m kpkg`` that print these.
PRINTED = {
    "--includes": lambda: f"-I{get_include()}",
    "--cmakedir": get_cmake_dir,
    "--pkgconfigdir": get_pkgconfig_dir,
}
