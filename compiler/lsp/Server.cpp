// Connects the protocol's messages with the features.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Server.h"
#include "compiler/lsp/Checks.h"
#include "compiler/lsp/Features.h"
#include "compiler/lsp/PublishedDiagnostics.h"
#include "compiler/lsp/Requests.h"
#include "llvm/Support/LSP/Logging.h"
#include "llvm/Support/LSP/Transport.h"

namespace kpkg::lsp {

namespace {

namespace json = llvm::json;
using namespace llvm::lsp;

/// LLVM's conversion of a location refers to its URI, and the answer is written when the location is gone.
json::Value owning(const std::vector<Location> &locations) {
  json::Array list;
  for (const Location &location : locations)
    list.push_back(json::Object{{"uri", location.uri.uri().str()}, {"range", toJSON(location.range)}});
  return list;
}

/// Returns the types of a check with those of an earlier one, for expressions of an equal text that this check did not
/// reach.
std::shared_ptr<const Types> merged(const std::shared_ptr<const Types> &before,
                                    const std::shared_ptr<const Types> &found) {
  if (!before || before->text()->text() != found->text()->text())
    return found;
  std::vector<Types::Entry> all = found->entries();
  for (const Types::Entry &entry : before->entries())
    if (!found->at(entry.span))
      all.push_back(entry);
  return std::make_shared<Types>(found->text(), std::move(all), found->gpu());
}

/// Requests wait for one lock, which no check holds while it works.
class Server {
public:
  Server(JSONTransport &transport, const AnalysisOptions &options, std::string version)
      : version(std::move(version)), handler(transport), workspace(options.program.importPaths),
        publishDiagnostics(handler.outgoingNotification<json::Value>("textDocument/publishDiagnostics")),
        checks(options, {[this] { return texts(); },
                         [this](const std::string &path, const Analysis &found) { takeEarly(path, found); },
                         [this](const std::string &path, const Analysis &found) { take(path, found); }}) {
    handler.method("initialize", this, &Server::initialize);
    handler.notification("initialized", this, &Server::ignore);
    handler.method("shutdown", this, &Server::shutdown);
    handler.notification("textDocument/didOpen", this, &Server::didOpen);
    handler.notification("textDocument/didChange", this, &Server::didChange);
    handler.notification("textDocument/didClose", this, &Server::didClose);
    handler.notification("textDocument/didSave", this, &Server::ignore);
    handler.notification("workspace/didChangeWorkspaceFolders", this, &Server::didChangeFolders);
    handler.notification("workspace/didChangeWatchedFiles", this, &Server::didChangeFiles);
    handler.notification("workspace/didChangeConfiguration", this, &Server::ignore);
    handler.notification("$/cancelRequest", this, &Server::ignore); // answers come before a client could cancel
    handler.notification("$/setTrace", this, &Server::ignore);
    handler.method("textDocument/hover", this, &Server::hover);
    handler.method("textDocument/definition", this, &Server::definition);
    handler.method("textDocument/references", this, &Server::references);
    handler.method("textDocument/documentHighlight", this, &Server::highlights);
    handler.method("textDocument/prepareRename", this, &Server::prepareRename);
    handler.method("textDocument/rename", this, &Server::rename);
    handler.method("textDocument/completion", this, &Server::completion);
    handler.method("textDocument/inlayHint", this, &Server::hints);
    handler.method("textDocument/documentSymbol", this, &Server::symbols);
    handler.method("textDocument/formatting", this, &Server::format);
    handler.method("textDocument/codeAction", this, &Server::codeActions);
  }

  MessageHandler &messages() { return handler; }
  bool wasShutDown() const { return isShutDown; }

private:
  const std::string version;
  bool isShutDown = false;
  MessageHandler handler;
  std::mutex mutex; ///< of all below
  Workspace workspace;
  PublishedDiagnostics published;
  std::map<std::string, std::vector<std::string>> filesOfRoot;
  OutgoingNotification<json::Value> publishDiagnostics;
  Checks checks; // the last member: its thread ends first

  void ignore(const NoParams &) {}

  // The life of the server.

  void initialize(const InitializeRequest &request, Callback<json::Value> reply) {
    for (const std::string &uri : request.folders)
      if (auto path = pathOf(uri))
        workspace.addFolder(*path);
    json::Object capabilities{
        {"textDocumentSync", json::Object{{"openClose", true}, {"change", 2}}},
        {"hoverProvider", true},
        {"definitionProvider", true},
        {"referencesProvider", true},
        {"documentHighlightProvider", true},
        {"renameProvider", json::Object{{"prepareProvider", true}}},
        {"completionProvider", json::Object{{"triggerCharacters", json::Array{".", "@", "(", "["}}}},
        {"inlayHintProvider", true},
        {"documentSymbolProvider", true},
        {"documentFormattingProvider", true},
        {"codeActionProvider", json::Object{{"codeActionKinds", json::Array{"quickfix"}}}},
        {"workspace",
         json::Object{{"workspaceFolders", json::Object{{"supported", true}, {"changeNotifications", true}}}}}};
    reply(json::Object{{"capabilities", std::move(capabilities)},
                       {"serverInfo", json::Object{{"name", "kpkg"}, {"version", version}}}});
  }

  void shutdown(const NoParams &, Callback<std::nullptr_t> reply) {
    isShutDown = true;
    reply(nullptr);
  }

  // Texts.

  OpenTexts texts() {
    std::lock_guard lock(mutex);
    return workspace.openTexts();
  }

  /// Requests a check of a file that changed, and of the open ones that import it.
  void recheck(const std::string &path, bool isOpen) {
    for (const auto &[root, files] : filesOfRoot)
      if (root != path && std::find(files.begin(), files.end(), path) != files.end())
        checks.request(root, false);
    if (isOpen)
      checks.request(path, true);
  }

  void didOpen(const DidOpenTextDocumentParams &params) {
    std::lock_guard lock(mutex);
    const TextDocumentItem &item = params.textDocument;
    auto path = pathOf(item.uri.uri());
    if (!path)
      return;
    workspace.open(*path, item.uri.uri().str(), item.version, item.text);
    recheck(*path, true);
  }

  void didChange(const DidChangeTextDocumentParams &params) {
    std::lock_guard lock(mutex);
    auto path = pathOf(params.textDocument.uri.uri());
    File *file = path ? workspace.file(*path) : nullptr;
    if (!file || !file->isOpen)
      return Logger::error("a change of {0}, which is not open", params.textDocument.uri.uri());
    std::string text(file->text->text());
    for (const TextDocumentContentChangeEvent &change : params.contentChanges) {
      if (!change.range) {
        text = change.text;
        continue;
      }
      Text before = makeText(*path, text);
      uint32_t begin = offsetOf(*before, change.range->start), end = offsetOf(*before, change.range->end);
      text.replace(begin, std::max(begin, end) - begin, change.text);
    }
    workspace.open(*path, file->uri, params.textDocument.version, std::move(text));
    recheck(*path, true);
  }

  void didClose(const DidCloseTextDocumentParams &params) {
    std::lock_guard lock(mutex);
    auto path = pathOf(params.textDocument.uri.uri());
    if (!path)
      return;
    checks.forget(*path);
    filesOfRoot.erase(*path);
    workspace.close(*path);
    publish(published.set(*path, {}));
    recheck(*path, false);
  }

  void didChangeFolders(const FoldersChange &change) {
    std::lock_guard lock(mutex);
    for (const std::string &uri : change.removed)
      if (auto path = pathOf(uri))
        workspace.removeFolder(*path);
    for (const std::string &uri : change.added)
      if (auto path = pathOf(uri))
        workspace.addFolder(*path);
  }

  void didChangeFiles(const FilesChange &change) {
    std::lock_guard lock(mutex);
    OpenTexts open = workspace.openTexts();
    for (const std::string &uri : change.uris)
      if (auto path = pathOf(uri); path && !open.count(*path)) {
        workspace.forget(*path);
        recheck(*path, false);
      }
  }

  // Results of checks, on their thread.

  void publish(const std::set<std::string> &paths) {
    for (const std::string &path : paths)
      publishDiagnostics(published.of(path, workspace));
  }

  void takeEarly(const std::string &path, const Analysis &found) {
    std::lock_guard lock(mutex);
    publish(published.set(path, found.diagnostics));
  }

  void take(const std::string &path, const Analysis &found) {
    OpenTexts open = texts();
    if (!open.count(path))
      return;
    for (const auto &[of, types] : found.types) {
      if (!open.count(of))
        continue;
      std::unique_lock lock(mutex);
      auto before = workspace.types(of); // lives until the lock is released, since freeing it takes time
      lock.unlock();
      auto all = merged(before, types); // only this thread sets types
      lock.lock();
      workspace.setTypes(of, std::move(all));
      lock.unlock();
    }
    std::lock_guard lock(mutex);
    filesOfRoot[path] = found.files;
    publish(published.set(path, found.diagnostics));
  }

  // Requests.

  /// Replies with what `answer` returns for the file and the offset of a position, or with null for an unknown file.
  template <typename Params, typename Answer>
  void at(const Params &params, Callback<json::Value> &reply, Answer answer) {
    std::lock_guard lock(mutex);
    auto path = pathOf(params.textDocument.uri.uri());
    File *file = path ? workspace.file(*path) : nullptr;
    if (!file)
      return reply(nullptr);
    if constexpr (std::is_base_of_v<TextDocumentPositionParams, Params>)
      reply(answer(*file, offsetOf(*file->text, params.position)));
    else
      reply(answer(*file));
  }

  void hover(const TextDocumentPositionParams &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file, uint32_t offset) -> json::Value {
      auto found = hoverAt(workspace, file, offset);
      return found ? toJSON(*found) : nullptr;
    });
  }

  void definition(const TextDocumentPositionParams &params, Callback<json::Value> reply) {
    at(params, reply,
       [&](const File &file, uint32_t offset) -> json::Value { return owning(definitionAt(workspace, file, offset)); });
  }

  void references(const ReferenceParams &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file, uint32_t offset) -> json::Value {
      return owning(referencesAt(workspace, file, offset, params.context.includeDeclaration));
    });
  }

  void highlights(const TextDocumentPositionParams &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file, uint32_t offset) -> json::Value {
      json::Array found;
      for (Range range : highlightsAt(workspace, file, offset))
        found.push_back(json::Object{{"range", toJSON(range)}});
      return found;
    });
  }

  void prepareRename(const TextDocumentPositionParams &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file, uint32_t offset) -> llvm::Expected<json::Value> {
      auto range = renameableAt(workspace, file, offset);
      return range ? llvm::Expected<json::Value>(toJSON(*range)) : range.takeError();
    });
  }

  void rename(const RenameRequest &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file, uint32_t offset) -> llvm::Expected<json::Value> {
      auto edit = renamed(workspace, file, offset, params.newName);
      return edit ? llvm::Expected<json::Value>(toJSON(*edit)) : edit.takeError();
    });
  }

  void completion(const CompletionParams &params, Callback<json::Value> reply) {
    at(params, reply,
       [&](const File &file, uint32_t offset) -> json::Value { return toJSON(completionAt(workspace, file, offset)); });
  }

  void hints(const InlayHintsParams &params, Callback<json::Value> reply) {
    at(params, reply,
       [&](const File &file) -> json::Value { return json::Array(inlayHints(workspace, file, params.range)); });
  }

  void symbols(const DocumentSymbolParams &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file) -> json::Value { return json::Array(documentSymbols(workspace, file)); });
  }

  void format(const FormatRequest &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file) -> llvm::Expected<json::Value> {
      auto edits = formatted(file);
      return edits ? llvm::Expected<json::Value>(json::Array(*edits)) : edits.takeError();
    });
  }

  void codeActions(const CodeActionParams &params, Callback<json::Value> reply) {
    at(params, reply, [&](const File &file) -> json::Value {
      return json::Array(published.fixes(file.path, params.range, workspace));
    });
  }
};

} // namespace

bool serve(std::FILE *in, llvm::raw_ostream &out, const AnalysisOptions &options, const std::string &version) {
  Logger::setLogLevel(Logger::Level::Error);
  JSONTransport transport(in, out);
  Server server(transport, options, version);
  if (llvm::Error error = transport.run(server.messages()))
    Logger::error("{0}", llvm::toString(std::move(error)));
  return server.wasShutDown();
}

} // namespace kpkg::lsp
