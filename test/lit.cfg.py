"""lit's view of the tests: which files, which commands they may call.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import os
import sys

import lit.formats

config.name = "kpkg"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".k", ".test"]
config.excludes = ["inputs", "golden", "corpus", "kernels", "python", "fuzz", "layers"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.kpkg_build_dir, "test", "out")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.kpkg_build_dir, "bin"), config.llvm_bin_dir, os.environ.get("PATH", "")]
)
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%source_root", os.path.dirname(config.test_source_root)))
config.substitutions.append(("%fake_driver", os.path.join(config.kpkg_build_dir, "lib", "libkpkg_fake_driver.so")))
config.substitutions.append(("%fake_cupti", os.path.join(config.kpkg_build_dir, "lib", "libkpkg_fake_cupti.so")))
