"""Runs ``python -m kpkg doctor``, ``profile``, ``inject``, ``hub``, ``onnx`` and ``--cmakedir``.

The command runs all else.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import os
import runpy
import signal
import sys

from kpkg import _development, _hub_command, _inject_command, _onnx_command


def main() -> int:
    """Runs the command line and returns the exit code.

    A reader of the output that has gone (``| head``) is no error of this program. The exit code is that of SIGPIPE
    then.
    """
    try:
        code = _run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes stdout again at its end
        return 128 + signal.SIGPIPE


def _run() -> int:
    if len(sys.argv) == 2 and sys.argv[1] in _development.PRINTED:
        print(_development.PRINTED[sys.argv[1]]())
        return 0
    if len(sys.argv) > 1 and sys.argv[1] not in ("doctor", "profile", "inject", "hub", "onnx", "-h", "--help"):
        from kpkg._compiler import environment_of, find_command

        try:
            command = find_command()
        except FileNotFoundError as error:
            print(f"kpkg: {error}", file=sys.stderr)
            return 3
        os.execve(command, [command, *sys.argv[1:]], environment_of(command))
    parser = argparse.ArgumentParser(
        prog="python -m kpkg",
        description="Other subcommands are handed to the kpkg command.",
        epilog=f"For C++ projects, one of {', '.join(_development.PRINTED)} alone prints what they need.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser(
        "doctor", help="say what is installed for Python and PyTorch, what works, and what to do about the rest"
    )
    doctor.add_argument("--json", action="store_true", help="a JSON list of {state, subject, text, advice}")
    profile = commands.add_parser("profile", help="run a Python script and show what its kpkg ops and kernels took")
    profile.add_argument("--trace", metavar="FILE", help="also write a trace for Perfetto or chrome://tracing")
    profile.add_argument("--ranges", action="store_true", help="make each call a range for NVTX tools")
    profile.add_argument("script")
    profile.add_argument("arguments", nargs=argparse.REMAINDER)
    _inject_command.add_arguments(
        commands.add_parser("inject", help="replace layers of a model by kpkg's and print what became of each")
    )
    _hub_command.add_arguments(
        commands.add_parser("hub", help="write packages as a kernel repository for Hugging Face's `kernels`")
    )
    _onnx_command.add_arguments(
        commands.add_parser(
            "onnx", help="rewrite nodes of an ONNX model to ops of packages, and print what became of each"
        )
    )
    options = parser.parse_args()
    if options.command == "doctor":
        from kpkg._doctor import run

        return run(options.json)
    if options.command == "inject":
        return _inject_command.run(options)
    if options.command == "hub":
        return _hub_command.run(options)
    if options.command == "onnx":
        return _onnx_command.run(options)
    if not os.path.isfile(options.script):
        print(f"kpkg: there is no script {options.script!r}", file=sys.stderr)
        return 3
    import kpkg

    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    with kpkg.profile_kernel(ranges=options.ranges) as taken:
        runpy.run_path(options.script, run_name="__main__")
    print(taken.summary())
    if options.trace:
        taken.export_chrome_trace(options.trace)
    return 0


if __name__ == "__main__":
    sys.exit(main())
