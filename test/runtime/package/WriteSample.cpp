// Writes the sample package to a file, for tests that are separate programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"
#include "test/runtime/package/SamplePackage.h"

int main(int count, char **arguments) {
  return count == 2 && kpkg::format::writeFile(arguments[1], kpkg::test::samplePackage()) ? 0 : 1;
}
