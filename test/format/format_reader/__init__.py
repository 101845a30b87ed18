"""Reads packages and evaluates plans by docs/package-format.md alone; shares no code with kpkg.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
