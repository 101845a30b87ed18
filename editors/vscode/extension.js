// Starts `kpkg lsp` for files of the .k language.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("kpkg");
  const server = { command: settings.get("command"), args: ["lsp", ...settings.get("arguments")] };
  client = new LanguageClient("kpkg", "kpkg", server, {
    documentSelector: [{ scheme: "file", language: "kpkg" }],
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.k") },
  });
  await client.start();
}

async function stop() {
  await client?.stop();
  client = undefined;
}

exports.activate = async (context) => {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("kpkg.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("kpkg") && restart()),
  );
  await start();
};

exports.deactivate = stop;
