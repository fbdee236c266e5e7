/** What VS Code is told of protocol texts beyond their colours: all of it comes from `cohkit language-server`. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

/** How long the command has to say that it is there. */
const MOST_MILLISECONDS = 10_000;

let client: LanguageClient | undefined;
/** Starts and stops come one after the other. */
let last: Promise<void> = Promise.resolve();

export function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("cohkit.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("cohkit.command")) void restart();
    }),
  );
  return restart();
}

export function deactivate(): Promise<void> {
  return next(stop);
}

function restart(): Promise<void> {
  return next(async () => {
    await stop();
    await start();
  });
}

function next(step: () => Promise<void>): Promise<void> {
  last = last.then(step, step);
  return last;
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  try {
    await running?.dispose();
  } catch {
    // A server that has ended before is not there to be stopped.
  }
}

async function start(): Promise<void> {
  const command = vscode.workspace.getConfiguration("cohkit").get<string>("command", "cohkit");
  const wrong = await whyNot(command);
  if (wrong !== undefined) {
    complain(wrong);
    return;
  }
  client = new LanguageClient(
    "cohkit",
    "Cohkit",
    { command, args: ["language-server"] },
    { documentSelector: ["file", "untitled"].map((scheme) => ({ language: "cohkit", scheme })) },
  );
  await client.start();
}

/** Why the command can be no language server, and what to do about it; nothing if it can. */
async function whyNot(command: string): Promise<string | undefined> {
  try {
    await promisify(execFile)(command, ["language-server", "--help"], { timeout: MOST_MILLISECONDS });
    return undefined;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ENOENT") {
      return (
        `The command \`${command}\` is not found. Install Cohkit (\`cargo install --locked --path crates/cohkit\` ` +
        "in its sources), or say in the setting `cohkit.command` where the command is."
      );
    }
    const what = code === "EACCES" ? "may not be run" : "has no language server: it may be an older Cohkit, or another program";
    return `The command \`${command}\` ${what}. The setting \`cohkit.command\` says which one is meant.`;
  }
}

/** Says what is wrong, without waiting for somebody to read it. */
function complain(what: string): void {
  const settings = "Open the setting";
  const again = "Try again";
  void vscode.window.showErrorMessage(what, settings, again).then((chosen) => {
    if (chosen === settings) void vscode.commands.executeCommand("workbench.action.openSettings", "cohkit.command");
    if (chosen === again) void restart();
  });
}
