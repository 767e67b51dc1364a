// Compiles WGSL with naga, a compiler other than the one that runs it: what both accept is likely
// to work everywhere. usage: node naga_check.mjs NAGA_FOLDER FOLDER_OR_FILE...
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...places] = process.argv.slice(2);
if (!folder || places.length === 0) {
  console.error("usage: node naga_check.mjs NAGA_FOLDER FOLDER_OR_FILE...");
  process.exit(2);
}

const naga = await import(pathToFileURL(join(folder, "dist/node.js"))).catch((error) => {
  console.error(`naga is not in ${folder}: ${error.message}; ./dev webgpu installs it`);
  process.exit(2);
});

const shadersIn = (place) =>
  readdirSync(place).filter((name) => name.endsWith(".wgsl")).sort().map((name) => join(place, name));
const files = places
  .filter((place) => existsSync(place))
  .flatMap((place) => (statSync(place).isDirectory() ? shadersIn(place) : [place]));
if (files.length === 0) {
  console.error(`there are no shaders in ${places.join(", ")}; tests write them, run those before`);
  process.exit(1);
}

// naga has subgroups, but does not know yet that they are to be enabled.
const source = (file) => readFileSync(file, "utf8").replace(/^enable subgroups;/m, "");

let failed = 0;
for (const file of files) {
  try {
    const module = naga.parseWgsl(source(file));
    naga.validate(module).free();
    module.free();
  } catch (error) {
    ++failed;
    const text = error.formatted ?? String(error);
    const line = /:(\d+):\d+/.exec(text)?.[1] ?? 1; // "   ┌─ wgsl:12:5"
    console.log(`${file}:${line}: ${text.trim()}`);
  }
}
console.log(`naga: ${files.length - failed} of ${files.length} shaders are valid`);
process.exit(failed ? 1 : 0);
