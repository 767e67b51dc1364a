// Compiles WGSL with naga, a compiler other than the one that runs it: what both accept is likely
// to work everywhere. On all cores: it comes when all other tests have run.
// usage: node naga_check.mjs NAGA_FOLDER FOLDER_OR_FILE...
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const load = (folder) => import(pathToFileURL(join(folder, "dist/node.js")));

// naga has subgroups, but does not know yet that they are to be enabled.
const source = (file) => readFileSync(file, "utf8").replace(/^enable subgroups;/m, "");

// What is wrong with each of these files; nothing about valid ones.
function problemsOf(naga, files) {
  const problems = [];
  for (const file of files) {
    try {
      const module = naga.parseWgsl(source(file));
      naga.validate(module).free();
      module.free();
    } catch (error) {
      const text = error.formatted ?? String(error);
      const line = /:(\d+):\d+/.exec(text)?.[1] ?? 1; // "   ┌─ wgsl:12:5"
      problems.push(`${file}:${line}: ${text.trim()}`);
    }
  }
  return problems;
}

const inWorker = (folder, files) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { folder, files } });
    worker.once("message", resolve);
    worker.once("error", reject);
  });

async function main([folder, ...places]) {
  if (!folder || places.length === 0) {
    console.error("usage: node naga_check.mjs NAGA_FOLDER FOLDER_OR_FILE...");
    return 2;
  }
  try {
    await load(folder);
  } catch (error) {
    console.error(`naga is not in ${folder}: ${error.message}; ./dev webgpu installs it`);
    return 2;
  }
  const shadersIn = (place) =>
    readdirSync(place).filter((name) => name.endsWith(".wgsl")).sort().map((name) => join(place, name));
  const files = places
    .filter((place) => existsSync(place))
    .flatMap((place) => (statSync(place).isDirectory() ? shadersIn(place) : [place]));
  if (files.length === 0) {
    console.error(`there are no shaders in ${places.join(", ")}; tests write them, run those before`);
    return 1;
  }
  const count = Math.min(cpus().length, files.length);
  const shares = Array.from({ length: count }, (_, i) => files.filter((_, k) => k % count === i));
  const problems = (await Promise.all(shares.map((share) => inWorker(folder, share)))).flat().sort();
  for (const problem of problems) console.log(problem);
  console.log(`naga: ${files.length - problems.length} of ${files.length} shaders are valid`);
  return problems.length > 0 ? 1 : 0;
}

if (isMainThread) process.exitCode = await main(process.argv.slice(2));
else parentPort.postMessage(problemsOf(await load(workerData.folder), workerData.files));
