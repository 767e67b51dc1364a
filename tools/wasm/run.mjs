// Runs a WebAssembly program under node: node --no-warnings run.mjs PROGRAM [ARGUMENTS]
// It may read files, so that tests find their tables.
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const [program, ...rest] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1', args: [program, ...rest], env: process.env, preopens: { '/': '/' },
  returnOnExit: true,
});
const { instance } = await WebAssembly.instantiate(
  await readFile(program), { wasi_snapshot_preview1: wasi.wasiImport });
process.exitCode = wasi.start(instance);
