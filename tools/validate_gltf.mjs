// Runs Khronos' glTF validator over files and prints one JSON object per line: {file, errors: [...], warnings: n}.
// Usage: node tools/validate_gltf.mjs FILE…   (the npm package gltf-validator is looked for in .oracles/node_modules)
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const validator = createRequire(join(root, ".oracles", "package.json"))("gltf-validator");

for (const file of process.argv.slice(2)) {
  const report = await validator.validateBytes(new Uint8Array(readFileSync(file)), {
    uri: file,
    maxIssues: 0,
    externalResourceFunction: async (uri) => new Uint8Array(readFileSync(resolve(dirname(file), decodeURIComponent(uri)))),
  });
  const errors = report.issues.messages.filter((message) => message.severity === 0).map(({ code, message, pointer }) => ({ code, message, pointer }));
  console.log(JSON.stringify({ file, errors, warnings: report.issues.numWarnings }));
}
