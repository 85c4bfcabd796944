// Opens programs with Netron's own code: `node netron_side.mjs FOLDER FILE...`. FOLDER is that of the
// Python package, whose scripts Node runs without a browser. Prints as JSON what each file shows.

import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(join(folder, `${name.replace("./", "")}.js`)).href);
const { ModelFactoryService } = await load("view");
const { BinaryStream } = await load("base");

// What Netron asks of a page, and of the place that a file comes from.
const host = {
  environment: () => null, event() {}, require: load, exception(error) { throw error; },
};
const place = (path) => ({
  identifier: basename(path),
  stream: new BinaryStream(new Uint8Array(readFileSync(path))),
  entries: new Map(),
  require: load,
  asset: async (file) => readFileSync(join(folder, file), "utf-8"),
  error(error) { throw error; },
});

function argument({ name, value }) {
  const tensor = Array.isArray(value) ? value[0] : null;
  const bytes = tensor && tensor.initializer ? tensor.initializer.values : null;
  return { name, type: tensor && tensor.type ? String(tensor.type) : "", bytes: bytes ? bytes.length : 0 };
}

const node = ({ type, inputs, outputs }) => ({
  name: type.identifier || type.name,
  inside: (type.nodes || []).map((inner) => inner.type.name),
  inputs: inputs.map(argument), outputs: outputs.map(argument),
});

const told = {};
for (const file of files) {
  try {
    const { format, modules } = await new ModelFactoryService(host).open(place(file));
    const methods = modules.map(({ name, inputs, outputs, nodes }) => ({
      name, inputs: inputs.map(argument), outputs: outputs.map(argument), nodes: nodes.map(node),
    }));
    told[basename(file)] = { format, methods };
  } catch (error) {
    told[basename(file)] = { error: error.message };
  }
}
console.log(JSON.stringify(told));
