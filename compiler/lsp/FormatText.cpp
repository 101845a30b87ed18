// Formats a text as `kpkg fmt` does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Features.h"
#include "compiler/syntax/Format.h"

namespace kpkg::lsp {

llvm::Expected<std::vector<llvm::lsp::TextEdit>> formatted(const File &file) {
  auto failed = [](const char *why) {
    return llvm::make_error<llvm::lsp::LSPError>(why, llvm::lsp::ErrorCode::RequestFailed);
  };
  compiler::DiagnosticEngine diags;
  auto text = compiler::formatSource(*file.text, diags);
  if (!text)
    return failed("the source has syntax errors, so that it has no layout");
  if (*text == file.text->text())
    return std::vector<llvm::lsp::TextEdit>();
  if (!compiler::hasSameTokens(*file.text, *makeText(file.path, *text)))
    return failed("its layout would be another program; this is a bug of kpkg, please report it");
  return std::vector<llvm::lsp::TextEdit>{
      {rangeOf(*file.text, {0, static_cast<uint32_t>(file.text->text().size())}), *text}};
}

} // namespace kpkg::lsp
