// Carries the precompiled header. It has no code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
