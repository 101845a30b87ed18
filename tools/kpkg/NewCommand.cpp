// `kpkg new`: writes a source to start from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace kpkg::command {

namespace {

/// `NAME` is replaced by the name. Only one line computes, which users can replace.
constexpr std::string_view kernelTemplate = R"k("""NAME: squares, element by element."""

comptime BLOCK = 4096


@kernel
@specialize(T=[float32, float64, float16, bfloat16])
def NAME_blocks[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    """One block computes BLOCK neighbouring elements."""
    var v = x.tile[BLOCK](block_idx.x).load().cast[accumulator(T)]()
    y.tile[BLOCK](block_idx.x).store((v * v).cast[T]())


@register.op("NAMESPACE::NAME")
def NAME(input: Tensor) raises -> Tensor:
    """`input * input`, of its shape and dtype."""
    var out = empty_like(input)
    var n = input.numel()
    launch NAME_blocks[T=input.dtype](input.reshape(n), out.reshape(n), grid=ceildiv(n, BLOCK))
    return out
)k";

constexpr std::string_view referenceTemplate = R"k(

@kernel
@specialize(T=[float32, float64, float16, bfloat16])
def NAME_plainly[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    """One element in float64."""
    var v = x.tile[1](block_idx.x).load().cast[float64]()
    y.tile[1](block_idx.x).store((v * v).cast[T]())


@register.reference("NAMESPACE::NAME")
def NAME_reference(input: Tensor) raises -> Tensor:
    """What NAME means: `kpkg test` compares the two."""
    var out = empty_like(input)
    var n = input.numel()
    launch NAME_plainly[T=input.dtype](input.reshape(n), out.reshape(n), grid=n)
    return out


@register.test("NAMESPACE::NAME")
@specialize(T=[float32, bfloat16], N=sizes(1, 3000, 4))
def NAME_cases[T: DType, N: Int]():
    """Arguments of NAME: rows of odd lengths."""
    return randn([3, N], T)
)k";

struct NewOptions {
  std::string name;
  std::string nameSpace = "my";
  std::string kind = "op";
};

bool isName(std::string_view text) {
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && isLetter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

std::string filled(std::string text, std::string_view word, std::string_view value) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size())
    text.replace(at, word.size(), value);
  return text;
}

ExitCode create(const NewOptions &options) {
  std::filesystem::path path = options.name;
  if (path.extension() != ".k")
    path += ".k";
  std::string name = path.stem().string();
  for (const std::string &word : {name, options.nameSpace})
    if (!isName(word)) {
      fmt::print(stderr, "kpkg: error: '{}' is not a name of lower-case letters, digits and underscores\n", word);
      return UsageError;
    }
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    fmt::print(stderr, "kpkg: error: {} exists already\n", path.string());
    return InputRefused;
  }
  std::string text(kernelTemplate);
  if (options.kind == "op")
    text += referenceTemplate;
  text = filled(filled(text, "NAMESPACE", options.nameSpace), "NAME", name);
  if (Status status = format::writeFile(path.string(), text); !status)
    return report(status.error());
  fmt::print("wrote {}; next: kpkg {} {}\n", path.string(), options.kind == "op" ? "test" : "check", path.string());
  return Success;
}

} // namespace

void addNew(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("new", "Write a source with a kernel and an op to begin with");
  command->footer("Example: kpkg new scale && kpkg test scale.k");
  auto options = std::make_shared<NewOptions>();
  command->add_option("name", options->name, "The op's name; the file is NAME.k, which must not exist")->required();
  command->add_option("--template", options->kind, "kernel: a kernel and its op; op: with a reference too")
      ->check(CLI::IsMember({"kernel", "op"}))
      ->capture_default_str();
  command->add_option("--namespace", options->nameSpace, "Namespace of the op")->capture_default_str();
  command->callback([options, &exitCode] { exitCode = create(*options); });
}

} // namespace kpkg::command
