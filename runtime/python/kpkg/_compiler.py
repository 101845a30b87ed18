"""Compiles `.k` files and texts when they are needed, and caches the packages by content.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from kpkg._errors import KpkgWarning, PackageError, _caller_level
from kpkg._installed import folder_of
from kpkg._library import CustomOpLibrary


class CompileError(RuntimeError):
    """Reports that the compiler refused a file; the message has its diagnostics."""


def find_command() -> str:
    """Returns the path of the `kpkg` command.

    KPKG_COMMAND comes first, then the command of the package kpkg-compiler, then the one on PATH. The command of a
    build tree is the last.

    Raises:
        FileNotFoundError: There is no such command, or KPKG_COMMAND names no program.
    """
    named = os.environ.get("KPKG_COMMAND")
    if named and shutil.which(named) is None:
        raise FileNotFoundError(f"KPKG_COMMAND is {named}, which is no program that runs")
    own = _installed_command()
    beside = Path(__file__).resolve().parents[1].parent / "bin" / "kpkg"  # in a build tree
    found = named or (str(own) if own else None) or _on_path() or (str(beside) if beside.exists() else None)
    if found is None:
        raise FileNotFoundError(
            "there is no `kpkg` command: `pip install kpkg[compiler]`, put it on PATH, or name it by KPKG_COMMAND"
        )
    return found


def _installed_command() -> Path | None:
    folder = folder_of("kpkg_compiler")
    return folder / "bin" / "kpkg" if folder else None


def _on_path() -> str | None:
    found = shutil.which("kpkg")
    if found is not None:
        with open(found, "rb") as file:
            if file.read(2) == b"#!":  # the script that pip installs for this package, which would call itself
                return None
    return found


def environment_of(command: str) -> dict[str, str]:
    """Returns the environment to run the command in.

    The command of the package kpkg-compiler has its libraries in a folder beside it.
    """
    libraries = Path(command).parent / "lib"
    if Path(command) != _installed_command() or not libraries.exists():
        return dict(os.environ)
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(filter(None, (str(libraries), os.environ.get("LD_LIBRARY_PATH", "")))),
    }


def cache_folder() -> Path:
    """Returns the folder of compiled packages: $KPKG_CACHE_DIR, else one in the user's cache folder."""
    named = os.environ.get("KPKG_CACHE_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kpkg"


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yields a path for a new file, which takes the place of `file` at the end of the block, once it is on disk."""
    temporary = file.with_name(f".{file.stem}-{os.urandom(8).hex()}{file.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


class Compiler:
    """Compiles `.k` files to packages by the `kpkg` command, and takes packages that were compiled before from a cache.

    The cache is keyed by content: every file that a build reads (the command lists them), the targets, the options and
    the compiler itself. Any number of processes may share it, without lock files. A package is written beside its
    place, synchronised and renamed. Its digest is checked when it is read, and a package that fails the check is
    compiled again.

    Args:
        command: The `kpkg` command; by default the result of `find_command`.
        cache: The folder of the cache; by default the result of `cache_folder`.

    Raises:
        FileNotFoundError: `command` is left out, and there is no `kpkg` command.
    """

    def __init__(self, command: str | None = None, cache: str | os.PathLike[str] | None = None) -> None:
        self.command: str = command or find_command()
        self.cache: Path = Path(cache) if cache is not None else cache_folder()
        #: How often the compiler ran for this object.
        self.compilations: int = 0

    def compile_from_file(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        targets: Sequence[str] | str | None = None,
        options: Sequence[str] = (),
    ) -> CustomOpLibrary:
        """Compiles a `.k` file or a folder of them and returns its ops.

        ``get_compiler().compile_from_file("softmax.k", "my_softmax").softmax(x)``.

        Args:
            path: The file or folder.
            name: The name of the package's file; the name of `path` by default.
            targets: Targets as for ``kpkg build --target``, which also defines the default.
            options: Further arguments of ``kpkg build``.

        Returns:
            The library of the package.

        Raises:
            FileNotFoundError: There is no `path`.
            CompileError: The compiler refused the source; the message has its diagnostics.
            PackageError: The package cannot be loaded.
            ValueError: `name` has characters other than letters, digits, - and _.
            OSError: A file cannot be read or written.
        """
        return CustomOpLibrary.load(self.package_of(path, name, targets, options))

    def compile_from_source(
        self, text: str, name: str = "source", targets: Sequence[str] | str | None = None, options: Sequence[str] = ()
    ) -> CustomOpLibrary:
        """Compiles the text of a `.k` file and returns its ops.

        Indentation that all lines share is ignored. Modules of your own are imported from the folders that ``-I`` names
        in `options`.

        Args:
            text: The source.
            name: The name of the source in messages (``name.k:3``), and of the package's file.
            targets, options: Those of `compile_from_file`.

        Raises the errors of `compile_from_file`.
        """
        return CustomOpLibrary.load(self.package_of_source(text, name, targets, options))

    def package_of_source(
        self, text: str, name: str = "source", targets: Sequence[str] | str | None = None, options: Sequence[str] = ()
    ) -> Path:
        """Compiles as `compile_from_source` does, and returns the package's file in the cache.

        Takes the same arguments. Raises the same errors, but PackageError.
        """
        content = textwrap.dedent(text).encode()
        source = self.cache / "sources" / hashlib.sha256(content).hexdigest()[:32] / f"{_checked(name)}.k"
        if not source.exists() or source.read_bytes() != content:
            self._make_folder(source.parent)
            with replacing(source) as temporary:
                temporary.write_bytes(content)
        return self.package_of(source, name, targets, options)

    def package_of(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        targets: Sequence[str] | str | None = None,
        options: Sequence[str] = (),
    ) -> Path:
        """Compiles as `compile_from_file` does, and returns the package's file in the cache for other programs to open.

        Takes the same arguments. Raises the same errors, but PackageError.
        """
        source = Path(path)
        if not source.exists():
            raise FileNotFoundError(f"there is no {source}")
        chosen = targets if targets is None or isinstance(targets, str) else ",".join(targets)
        arguments = [str(source), *(["--target", chosen] if chosen else []), *options]
        file = self.cache / "packages" / self._key(arguments) / f"{_checked(name or source.stem)}.kpkg"
        if not self._is_good(file):
            self._make(source, file, arguments)
        return file

    def _key(self, arguments: Sequence[str]) -> str:
        digest = hashlib.sha256()

        def add(text: bytes) -> None:
            digest.update(len(text).to_bytes(8, "little") + text)

        version = self._run(["version"]).stdout
        command = os.stat(shutil.which(self.command) or self.command)
        add(version.encode())  # it also lists the targets that this CPU runs
        add(f"{command.st_size} {command.st_mtime_ns}".encode())
        for variable in ("KPKG_TARGET", "TORCH_CUDA_ARCH_LIST", "KPKG_PTXAS"):
            add(os.environ.get(variable, "").encode())
        for argument in arguments[1:]:
            add(argument.encode())
        listed = self._run(["build", *arguments, "--list-files"])
        if listed.returncode:
            raise CompileError(self._said(f"kpkg build {arguments[0]} failed:\n{listed.stdout}{listed.stderr}"))
        for file in map(Path, listed.stdout.splitlines()):
            add(file.name.encode())
            add(file.read_bytes())
        return digest.hexdigest()[:32]

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.command, *arguments], capture_output=True, text=True, env=environment_of(self.command)
        )

    def _said(self, text: str) -> str:
        """Returns a message of the command in which the file of `compile_from_source` has its name alone."""
        return re.sub(re.escape(f"{self.cache / 'sources'}{os.sep}") + "[0-9a-f]+/", "", text).rstrip()

    def _is_good(self, file: Path) -> bool:
        """Returns whether the file exists and every digest in it is right."""
        if not file.exists():
            return False
        try:
            CustomOpLibrary(file).verify()
        except (OSError, PackageError):
            return False
        return True

    def _make(self, source: Path, file: Path, arguments: Sequence[str]) -> None:
        self._make_folder(file.parent)
        with replacing(file) as temporary:
            done = self._run(["build", *arguments, "-o", str(temporary)])
            self.compilations += 1
            if done.returncode:
                raise CompileError(self._said(f"kpkg build {source} failed:\n{done.stdout}{done.stderr}"))
        if "warning:" in done.stderr:
            warnings.warn(self._said(done.stderr), KpkgWarning, stacklevel=_caller_level())

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = f"{error.strerror}; KPKG_CACHE_DIR names the folder of compiled packages"
            raise OSError(error.errno, text, str(self.cache)) from None


def _checked(name: str) -> str:
    if not name.replace("_", "").replace("-", "").isalnum():
        raise ValueError(f"{name!r} is no name for a package: letters, digits, - and _")
    return name


def get_compiler() -> Compiler:
    """Returns a compiler with the command and cache of the environment (KPKG_COMMAND, KPKG_CACHE_DIR).

    Raises:
        FileNotFoundError: There is no `kpkg` command.
    """
    return Compiler()


def compile_from_source(
    text: str, name: str = "source", targets: Sequence[str] | str | None = None, options: Sequence[str] = ()
) -> CustomOpLibrary:
    """Compiles the text of a `.k` file by `get_compiler`, and returns its ops.

    ``kpkg.compile_from_source(text).softmax(x)``. ``Compiler.compile_from_source`` describes the arguments.

    Raises the errors of `get_compiler` and of ``Compiler.compile_from_source``.
    """
    return get_compiler().compile_from_source(text, name, targets, options)
