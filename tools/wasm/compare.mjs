// Whether a program makes the same shaders natively and as WebAssembly.
// node compare.mjs NATIVE PROGRAM.wasm [ARGUMENTS]
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const [native, program, ...rest] = process.argv.slice(2);
if (!existsSync(native)) {
  console.error(`there is no ${native}: build anneal_core_steps natively first`);
  process.exit(1);
}
const options = { maxBuffer: 1 << 30, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] };
const run = fileURLToPath(new URL('run.mjs', import.meta.url));
// The second option is for node 18; later ones do without.
const flags = ['--no-warnings', '--experimental-wasi-unstable-preview1'];

// The sections of the output, "== mlp: 10 kernels" and shaders, each as its lines.
function sections(text) {
  return text.split(/^(?=== |@group\(0\) @binding\(0\) )/m).map((section) => section.split('\n'));
}

function output(command, args) {
  try {
    return sections(execFileSync(command, args, options));
  } catch (error) {
    console.error(`${command} ended with ${error.status ?? error.code}`);
    process.exit(1);
  }
}

const expected = output(native, rest);
const got = output(process.execPath, [...flags, run, program, ...rest]);
const shaders = expected.filter((lines) => lines.some((line) => line.startsWith('@compute')));
console.log(`${shaders.length} shaders`);
if (shaders.length === 0) {
  console.error('the native program made no shader');
  process.exit(1);
}
for (let i = 0; i < Math.max(expected.length, got.length); ++i) {
  const want = expected[i] ?? [], have = got[i] ?? [];
  const at = want.findIndex((line, k) => line !== have[k]);
  if (at < 0 && want.length === have.length) continue;
  console.error(`section ${i} differs\n  native: ${want[at]}\n  wasm:   ${have[at]}`);
  process.exit(1);
}
