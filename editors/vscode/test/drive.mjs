// Runs the extension as VS Code would, with the real language server behind it, and prints as JSON what comes of it.
//
//     node drive.mjs EXTENSION COMMAND TEXT
//
// EXTENSION is the folder of the packed extension, COMMAND the path of `cohkit`, TEXT a protocol text without errors.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, command, file] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(import.meta.url);
const { vscode, event, providers, registered, shown, settings, collections } = require("./vscode.cjs");
const Module = require("node:module");
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

// The bundle is long lines: they are not shown.
const fail = (error) => {
  console.error(error?.stack ?? error);
  process.exit(1);
};
process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
const LIMIT = 30_000;
const limit = setTimeout(() => fail(`nothing came within ${LIMIT} ms; shown: ${JSON.stringify(shown)}`), LIMIT);

const text = readFileSync(file, "utf8");
const lines = text.split("\n");
const document = { uri: vscode.Uri.file(file), languageId: "cohkit", version: 1, getText: () => document.text, text };
/** What was found wrong, as soon as it is told after a step. */
const told = async (step) => {
  collections.clear();
  const arrived = new Promise((done) => {
    const listener = event("diagnostics").event(() => {
      if (!collections.has(document.uri.toString())) return;
      listener.dispose();
      done();
    });
  });
  await step();
  await arrived;
  return collections.get(document.uri.toString()).map(({ message, range, severity }) => ({ message, range, severity }));
};
const change = (text) => () => {
  document.text = text;
  document.version += 1;
  const changes = [{ text }];
  event("onDidChangeTextDocument").fire({ document, contentChanges: changes, reason: undefined });
};
const set = (value) => {
  settings["cohkit.command"] = value;
  const affectsConfiguration = (name) => name === "cohkit.command";
  event("onDidChangeConfiguration").fire({ affectsConfiguration });
};

const extension = require(resolve(folder, require(resolve(folder, "package.json")).main));
const result = {};
vscode.workspace.textDocuments.push(document);
settings["cohkit.command"] = "/nonexistent/cohkit";
const context = { subscriptions: [] };
await extension.activate(context);
settings["cohkit.command"] = process.execPath;
await registered["cohkit.restart"]();
result.complaints = [...shown];

document.text = "protocol x @";
result.broken = await told(() => set(command));
result.fixed = await told(change(text));

// A line in which a message is sent, and the place of its name.
const line = lines.findIndex((line) => /\bsend \w+/.test(line));
const [, before, name] = /^(.*\bsend )(\w+)/.exec(lines[line]);
const place = new vscode.Position(line, before.length);
const token = new vscode.CancellationTokenSource().token;
const definition = await providers.registerDefinitionProvider.provideDefinition(document, place, token);
const [found] = [definition].flat();
result.definition = { name, uri: found.uri.toString(), line: lines[found.range.start.line], range: found.range };
const hover = await providers.registerHoverProvider.provideHover(document, place, token);
result.hover = [hover.contents].flat().map((part) => part.value ?? part).join("\n");
const completion = await providers.registerCompletionItemProvider.provideCompletionItems(document, place, token, {});
result.completion = (completion.items ?? completion).map((item) => item.label);

result.again = await told(() => registered["cohkit.restart"]());
result.shown = shown.slice(result.complaints.length);
await extension.deactivate();
context.subscriptions.forEach((one) => one.dispose());
result.left = { providers: Object.keys(providers), commands: Object.keys(registered) };
clearTimeout(limit);
// The client looks after servers for two seconds more, to end those that have not ended by themselves.
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
