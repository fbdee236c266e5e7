// As much of VS Code's interface as the extension and the client in it use: documents, settings, messages, and what
// providers were registered. A name that is not here is an event that never comes, a registration, or an empty class.
const { EventEmitter: Node } = require("node:events");
const { pathToFileURL, fileURLToPath } = require("node:url");

class Disposable {
  constructor(dispose) {
    this.dispose = dispose ?? (() => undefined);
  }
  static from(...all) {
    return new Disposable(() => all.forEach((one) => one.dispose()));
  }
}

class EventEmitter {
  #node = new Node();
  event = (listener, that) => {
    const bound = listener.bind(that);
    this.#node.on("event", bound);
    return new Disposable(() => this.#node.off("event", bound));
  };
  fire(value) {
    this.#node.emit("event", value);
  }
  dispose() {
    this.#node.removeAllListeners();
  }
}

class CancellationTokenSource {
  #emitter = new EventEmitter();
  token = { isCancellationRequested: false, onCancellationRequested: this.#emitter.event };
  cancel() {
    this.token.isCancellationRequested = true;
    this.#emitter.fire();
  }
  dispose() {}
}

class Uri {
  constructor(url) {
    this.url = url;
    this.scheme = url.protocol.slice(0, -1);
    this.path = decodeURIComponent(url.pathname);
    this.fsPath = this.scheme === "file" ? fileURLToPath(url) : this.path;
  }
  static parse = (text) => new Uri(new URL(text));
  static file = (path) => new Uri(pathToFileURL(path));
  toString() {
    return this.url.href;
  }
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}
class Range {
  constructor(a, b, c, d) {
    this.start = typeof a === "number" ? new Position(a, b) : a;
    this.end = typeof a === "number" ? new Position(c, d) : b;
  }
}
class Diagnostic {
  constructor(range, message, severity) {
    Object.assign(this, { range, message, severity });
  }
}
class Location {
  constructor(uri, range) {
    Object.assign(this, { uri, range });
  }
}
class Hover {
  constructor(contents, range) {
    Object.assign(this, { contents, range });
  }
}
class MarkdownString {
  constructor(value = "") {
    this.value = value;
  }
  appendMarkdown(text) {
    this.value += text;
    return this;
  }
}
class CompletionItem {
  constructor(label) {
    this.label = label;
  }
}
class CodeActionKind {
  append = () => this;
}
for (const name of ["Empty", "QuickFix", "Refactor", "RefactorExtract", "RefactorInline", "RefactorMove"])
  CodeActionKind[name] = new CodeActionKind();
for (const name of ["RefactorRewrite", "Source", "SourceFixAll", "SourceOrganizeImports", "Notebook"])
  CodeActionKind[name] = new CodeActionKind();

const events = new Map();
const event = (name) => {
  if (!events.has(name)) events.set(name, new EventEmitter());
  return events.get(name);
};
const providers = {};
const registered = {};
const shown = [];
const settings = {};
const collections = new Map();

/** An object, and for every other name what is said above. */
const open = (object) =>
  new Proxy(object, {
    get(target, name) {
      if (name in target || typeof name === "symbol" || name === "then") return target[name];
      if (/^on(Did|Will)/.test(name)) return event(name).event;
      if (/^register.*Provider$/.test(name))
        return (_, provider) => {
          providers[name] = provider;
          return new Disposable(() => delete providers[name]);
        };
      if (/^[A-Z]/.test(name)) return (target[name] = open(class {}));
      return undefined;
    },
  });

/** Nobody presses a button. */
const message = async (text) => {
  shown.push(text);
};
const nothing = () => undefined;
const writes = ["append", "appendLine", "show", "clear", "dispose", "error", "warn", "info", "debug", "trace"];
const output = () => open(Object.fromEntries(writes.map((name) => [name, nothing])));

const vscode = open({
  // So that whoever imports it takes it as it is, with the names that are not here.
  __esModule: true,
  CancellationTokenSource, CodeActionKind, CompletionItem, Diagnostic, Disposable, EventEmitter, Hover, Location,
  MarkdownString, Position, Range, Uri,
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  version: "1.91.0",
  env: open({ language: "en", appName: "a stub", openExternal: async () => true }),
  commands: open({
    registerCommand(name, run) {
      registered[name] = run;
      return new Disposable(() => delete registered[name]);
    },
    executeCommand: async (name) => registered[name]?.(),
  }),
  languages: open({
    match: (selector, document) =>
      [selector].flat().some((one) => one.language === document.languageId && one.scheme === document.uri.scheme) ? 10 : 0,
    createDiagnosticCollection: () => {
      const own = new Set();
      return open({
        set(uri, list) {
          own.add(uri.toString());
          collections.set(uri.toString(), list);
          event("diagnostics").fire();
        },
        delete: (uri) => collections.delete(uri.toString()),
        clear: () => own.forEach((uri) => collections.delete(uri)),
        dispose: () => own.forEach((uri) => collections.delete(uri)),
      });
    },
  }),
  window: open({
    showErrorMessage: message,
    showWarningMessage: message,
    showInformationMessage: message,
    createOutputChannel: output,
    visibleTextEditors: [],
    tabGroups: open({ all: [] }),
  }),
  workspace: open({
    textDocuments: [],
    notebookDocuments: [],
    workspaceFolders: undefined,
    getWorkspaceFolder: () => undefined,
    getConfiguration: (section) => ({ get: (name, other) => settings[`${section}.${name}`] ?? other }),
    createFileSystemWatcher: () => open({ dispose() {} }),
  }),
});

module.exports = { vscode, event, providers, registered, shown, settings, collections };
