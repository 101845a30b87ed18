// Declares the subcommands of `kpkg`. Each adds itself to the command line and, if chosen, stores its exit code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <CLI/CLI.hpp>

namespace kpkg::command {

/// Exit codes of `kpkg`, as listed by `kpkg --help`.
enum ExitCode : int {
  Success = 0,
  InputRefused = 1, ///< the source, package or arguments are wrong, or a check found a difference
  UsageError = 2,   ///< the command line is wrong
  WorldError = 3,   ///< a file, device or tool failed
};

void addBench(CLI::App &app, int &exitCode);
void addBuild(CLI::App &app, int &exitCode);
void addCheck(CLI::App &app, int &exitCode);
void addFormat(CLI::App &app, int &exitCode);
void addDiff(CLI::App &app, int &exitCode);
void addKeygen(CLI::App &app, int &exitCode);
void addLock(CLI::App &app, int &exitCode);
void addLsp(CLI::App &app, int &exitCode);
void addMerge(CLI::App &app, int &exitCode);
void addNew(CLI::App &app, int &exitCode);
void addSign(CLI::App &app, int &exitCode);
void addSplit(CLI::App &app, int &exitCode);
void addStrip(CLI::App &app, int &exitCode);
void addTest(CLI::App &app, int &exitCode);
void addTune(CLI::App &app, int &exitCode);
void addWatch(CLI::App &app, int &exitCode);
void addProfile(CLI::App &app, int &exitCode);
void addReplay(CLI::App &app, int &exitCode);
void addReproduce(CLI::App &app, int &exitCode);
void addRetarget(CLI::App &app, int &exitCode);
void addRun(CLI::App &app, int &exitCode);
void addInfo(CLI::App &app, int &exitCode);
void addDoctor(CLI::App &app, int &exitCode);
void addExplain(CLI::App &app, int &exitCode);
void addVerify(CLI::App &app, int &exitCode);
void addVersion(CLI::App &app, int &exitCode);

/// Returns "kpkg 0.1.0, LLVM 22.1.0, this CPU runs x86-64-v3", for `kpkg version` and `kpkg --version`.
std::string versionText();

} // namespace kpkg::command
