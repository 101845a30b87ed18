// Defines the identities of the errors of a build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileOptions.h"

namespace kpkg::compiler {

char KernelRefused::ID = 0;
char WrongUse::ID = 0;

} // namespace kpkg::compiler
