// Runs ops that have an argument `batch_invariant`, and checks that a row's results do not depend on the other rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/verify/CallCheck.h"

namespace kpkg::command::verify {

class BatchCheck {
public:
  /// Runs the call's first and last rows alone and among others, with `batch_invariant` set. Rows are the first
  /// dimension of the first tensor, and of those others that grow with all results.
  ///
  /// Checks nothing if the op has no such argument, or the call no such rows. The same holds if the reference, too, has
  /// other results for a row among others.
  Status run(const Op &op, const Op &reference, const Place &place, const TestedCall &call);

  /// Prints a line for each op, and returns whether none is wrong.
  bool print() const;

private:
  struct Record {
    int rows = 0;
    /// Describes the first row with other bits.
    std::string wrong;
    std::vector<std::string> lines;
  };
  std::map<std::string, Record> records;
};

} // namespace kpkg::command::verify
