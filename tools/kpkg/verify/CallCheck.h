// Runs a call with each instance that can run it, and collects how far its results are from expected ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/Commands.h"
#include "tools/kpkg/Place.h"
#include <functional>
#include <kpkg/kpkg.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kpkg::command::verify {

/// A call on the host.
struct TestedCall {
  /// Creates the arguments anew, since calls may write to them.
  std::function<Result<std::vector<Named>>()> make;
  /// Lines for the user that tell which call it is.
  std::vector<std::string> lines;
};

/// Which instances run a call.
struct Instances {
  enum Kind { All, Chosen, One } kind = All;
  std::string label; ///< of One
};

class CallCheck {
public:
  CallCheck(const Library &library, Instances wanted) : library(library), wanted(std::move(wanted)) {}

  /// Gets the labels of the instances that ran, and what came of it.
  using RunReport = std::function<void(const std::vector<std::string> &labels, const Status &status)>;
  /// Runs the call at the place.
  Status runAll(const Op &op, const Place &place, const TestedCall &call, const RunReport &report);
  /// Runs the call at the place and compares its outcome, that of outcome().
  Status compareAll(const Op &op, const Place &place, const TestedCall &call, const std::vector<Tensor> &expected);
  /// Notes instances whose results are the expected ones by definition.
  void noteReference(const Op &reference, const Place &place, const TestedCall &call);

  /// Prints a line for each instance, and returns whether none is wrong.
  bool print() const;
  size_t compared() const { return records.size(); }
  /// Returns how many instances ran only in references.
  size_t onlyInReferences() const;

private:
  struct Record {
    int calls = 0, right = 0;
    Errors worst;
    bool isDeterministic = true;
    /// Describes the first wrong call.
    std::string op, wrong;
    std::vector<std::string> lines;
  };
  Status
  forEachInstance(const Op &op, const Place &place, const TestedCall &call,
                  const std::function<void(const Op &used, const std::vector<std::string> &labels)> &visit) const;
  Result<Op> pinned(const Op &op, const std::string &kernel, const std::string &instance) const;
  void compare(const Op &op, const Op &used, const Place &place, const TestedCall &call,
               const std::vector<Tensor> &expected, double flops, const std::vector<std::string> &ran);
  bool wants(const std::vector<std::string> &labels) const;

  const Library &library;
  Instances wanted;
  std::map<std::string, Record> records;
  std::set<std::string> ofReferences; ///< instances that references ran, in calls to compare with
  std::set<std::string> claimsDeterministic;
};

} // namespace kpkg::command::verify
