// Puts the extension and all that it uses into dist/extension.js, and beside it the licences of what was used.
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const { metafile } = await build({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  minify: true,
  platform: "node",
  target: "node20",
  // VS Code itself gives this one.
  external: ["vscode"],
  metafile: true,
});

const package_of = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;
const folders = new Set(Object.keys(metafile.inputs).map((input) => package_of.exec(input)?.[0]));
folders.delete(undefined);
const licences = [...folders].sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (file === undefined) throw new Error(`${folder} has no licence`);
  return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
writeFileSync("dist/licences.txt", licences.join(`\n${"-".repeat(72)}\n\n`));
