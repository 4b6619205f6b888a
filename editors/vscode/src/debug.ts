// The debugger: `dpl dap` is the adapter, and values stand beside the code, in a reverse sweep with their cotangents.

import * as vscode from "vscode";

const NAME = /\b[a-z_][\w']*/g;
const KEYWORDS = new Set(
  "let rec in if then else match with fun for while do loop type open import export extern expect and or not true false".split(" "),
);

/** What the extension registers; `command` is the command `dpl` with its first arguments. */
export function debugging(command: () => string[]): vscode.Disposable[] {
  return [
    vscode.debug.registerDebugAdapterDescriptorFactory("dpl", {
      createDebugAdapterDescriptor: () => {
        const [program, ...args] = command();
        return new vscode.DebugAdapterExecutable(program, [...args, "dap"]);
      },
    }),
    vscode.debug.registerDebugConfigurationProvider("dpl", { resolveDebugConfiguration: completed }),
    vscode.languages.registerInlineValuesProvider({ language: "dpl" }, { provideInlineValues: values }),
    vscode.commands.registerCommand("dpl.debug", start),
  ];
}

async function start(): Promise<void> {
  const file = vscode.window.activeTextEditor?.document.uri;
  if (file) {
    const folder = vscode.workspace.getWorkspaceFolder(file);
    await vscode.debug.startDebugging(folder, launch(file.fsPath));
  }
}

function launch(program: string): vscode.DebugConfiguration {
  return { type: "dpl", request: "launch", name: "Debug this DPL program", program };
}

/** Without a launch.json, the program in view is debugged. */
function completed(
  _folder: vscode.WorkspaceFolder | undefined,
  given: vscode.DebugConfiguration,
): vscode.DebugConfiguration | undefined {
  if (given.type) {
    return given;
  }
  const editor = vscode.window.activeTextEditor;
  return editor?.document.languageId === "dpl" ? launch(editor.document.uri.fsPath) : undefined;
}

/** The names on the lines from the function's start to where the program has stopped. */
function values(
  document: vscode.TextDocument,
  view: vscode.Range,
  context: vscode.InlineValueContext,
): vscode.InlineValue[] {
  const found: vscode.InlineValue[] = [];
  const last = context.stoppedLocation.end.line;
  for (let line = Math.max(view.start.line, last - 30); line <= Math.min(last, view.end.line); line++) {
    const text = document.lineAt(line).text.replace(/--.*$/, "");
    const seen = new Set<string>();
    for (const match of text.matchAll(NAME)) {
      const name = match[0];
      if (!KEYWORDS.has(name) && !seen.has(name)) {
        seen.add(name);
        const range = new vscode.Range(line, match.index, line, match.index + name.length);
        found.push(new vscode.InlineValueVariableLookup(range, name, true));
        found.push(new vscode.InlineValueVariableLookup(range, `d ${name}`, true));
      }
    }
  }
  return found;
}
