// Prints, for each text given as a file, its tokens by the grammar as VS Code would cut and colour them: a JSON list of
// lines, each a list of [start, end, scope], the innermost scope, in UTF-16 columns.
//
//     node scopes.mjs FOLDER FILE...
//
// FOLDER is where package-lock.json is installed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(`${resolve(folder)}/`);
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

await oniguruma.loadWASM(readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")).buffer);
const path = new URL("syntaxes/cohkit.tmLanguage.json", import.meta.url);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(path, "utf8"), path.pathname),
});
const grammar = await registry.loadGrammar("source.cohkit");
const told = {};
for (const file of files) {
  let state = textmate.INITIAL;
  told[file] = readFileSync(file, "utf8").split(/\r?\n/).map((line) => {
    const done = grammar.tokenizeLine(line, state);
    state = done.ruleStack;
    return done.tokens.map((token) => [token.startIndex, token.endIndex, token.scopes.at(-1)]);
  });
}
console.log(JSON.stringify(told));
