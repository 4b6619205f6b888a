// The client of `dpl lsp`, and a command that runs the program in view.

import * as vscode from "vscode";
import { debugging } from "./debug";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

const INSTALL = "pip install 'dpl-lang[lsp]'";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("dpl.run", run),
    vscode.commands.registerCommand("dpl.restart", restart),
    ...debugging(command),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("dpl.command") || event.affectsConfiguration("dpl.languageServer")) {
        await restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}

/** The command `dpl`, as it is configured, and its arguments. */
function command(): string[] {
  const configured = vscode.workspace.getConfiguration("dpl").get<string[]>("command");
  return configured && configured.length > 0 ? configured : ["dpl"];
}

async function start(): Promise<void> {
  if (!vscode.workspace.getConfiguration("dpl").get<boolean>("languageServer", true)) {
    return;
  }
  const [program, ...args] = command();
  const server: ServerOptions = { command: program, args: [...args, "lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: [{ language: "dpl" }],
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.dp") },
    initializationFailedHandler: () => false,
  };
  client = new LanguageClient("dpl", "DPL", server, options);
  try {
    await client.start();
  } catch (failure) {
    client = undefined;
    await explain(program, failure);
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function restart(): Promise<void> {
  await stop();
  await start();
}

/** The server does not start: what could be done. */
async function explain(program: string, failure: unknown): Promise<void> {
  const settings = "Open settings";
  const text = `DPL's language server, \`${program} lsp\`, does not start. Is it installed?  ${INSTALL}  (${failure})`;
  if ((await vscode.window.showErrorMessage(text, settings)) === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "dpl.command");
  }
}

/** Runs the program in view, in a terminal, as it is saved. */
async function run(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== "dpl") {
    return;
  }
  await document.save();
  const name = "DPL";
  const terminal = vscode.window.terminals.find((t) => t.name === name) ?? vscode.window.createTerminal(name);
  terminal.show(true);
  terminal.sendText([...command(), "run", document.uri.fsPath].map(quoted).join(" "));
}

function quoted(word: string): string {
  return /^[\w./:\\-]+$/.test(word) ? word : `"${word.replace(/(["$`\\])/g, "\\$1")}"`;
}
