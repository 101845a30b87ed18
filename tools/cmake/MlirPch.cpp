// Carries the precompiled header; has no code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
