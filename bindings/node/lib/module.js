// Modules: programs that are open.
'use strict';

const check = require('./arguments.js');
const { describeMethod } = require('./describe.js');
const { Code, invalid } = require('./errors.js');
const { Handle, OWN, command } = require('./handle.js');
const { native, settled } = require('./native.js');
const { Tensor, dtypeName, dtypeOf, stridesOf } = require('./tensor.js');
const { traceFields } = require('./trace.js');
const { inputOf, outputOf } = require('./values.js');

const OPTIONS = {
  threads: (value, name) => check.whole(value, name, 0, 4096),
  memoryLimit: check.whole64,
  scratchBytes: check.whole64,
  maxInstructions: check.whole64,
  dataPath: check.path,
  backends: (value, name) => check.list(value, name, check.path),
  kernels: (value, name) => check.list(value, name, check.path),
  readsFile: (value, name) => Number(check.flag(value, name)),
  guardsFile: (value, name) => Number(check.flag(value, name)),
  reportsFailures: (value, name) => Number(check.flag(value, name)),
};
// While a run is to end: the addon does nothing if the run has not begun on its thread.
const CANCEL_EVERY_MS = 1;

/** {path} or {program}, as the addon takes what is opened. */
function sourceOf(source) {
  if (typeof source === 'string' || source instanceof URL) return { path: check.path(source) };
  return { program: check.bytes(source, 'source') };
}

function checkTargets(targets, outputs) {
  if (!Array.isArray(targets) || targets.length > outputs.length) {
    throw invalid(`outputs: give an array of at most ${outputs.length} tensors or nulls`);
  }
  targets.forEach((target, i) => {
    if (target === null || target === undefined) return;
    if (!(target instanceof Tensor)) {
      throw invalid(`outputs[${i}] is ${check.shown(target)}: give a Tensor or null`);
    }
    if (outputs[i].kind !== 'tensor' || outputs[i].dtype !== target.dtype) {
      const wanted =
        outputs[i].kind === 'tensor' ? outputs[i].dtype : `no tensor but ${outputs[i].kind}`;
      throw invalid(`outputs[${i}] is a tensor of ${target.dtype}, the method's is ${wanted}`);
    }
  });
}

/** A program that is open. Its calls are done one after the other, in the order they are made in. */
class Module extends Handle {
  #methods; // by their names
  #threads;
  #measured = new Set(); // methods that have run: the collector knows of their memory

  constructor(own, handle, methods, threads) {
    super(own, handle);
    this.#methods = methods;
    this.#threads = threads;
  }

  /** Opens a program: a path, a file URL, or its bytes. */
  static async open(source, options) {
    const fields = { ...check.options(options, OPTIONS), ...sourceOf(source) };
    const opened = await settled(() => native.openModule(fields));
    const methods = new Map(opened.methods.map((method) => [method.name, describeMethod(method)]));
    return new Module(OWN, opened.handle, methods, opened.threads);
  }

  /** The names of its methods. */
  get methods() {
    return [...this.#methods.keys()];
  }

  /** The threads that its kernels may use. */
  get threads() {
    return this.#threads;
  }

  /** What a method takes, gives and needs. */
  describe(method = 'forward') {
    const known = this.#methods.get(method);
    if (known !== undefined) return known;
    const names = this.methods.map((name) => JSON.stringify(name)).join(', ');
    throw invalid(`there is no method ${check.shown(method)}: the program has ${names}`);
  }

  /** Runs the method `forward`. */
  async forward(...inputs) {
    return this.run('forward', inputs);
  }

  /**
   * Runs a method, after loading it if necessary.
   *
   * @param {string} method its name
   * @param {Array} inputs tensors, numbers, bigints, booleans, strings and nulls
   * @param {{signal?: AbortSignal, outputs?: Array}} [options] signal: ends the run; outputs: tensors
   *     whose memory the method's outputs are written to, or null
   * @returns {Promise<Array>} the outputs
   */
  async run(method, inputs, options) {
    const known = this.describe(method);
    const { signal, outputs: targets = [] } = check.options(options, {
      signal: check.signal,
      outputs: (value) => value,
    });
    if (!Array.isArray(inputs)) throw invalid(`inputs is ${check.shown(inputs)}: give an array`);
    checkTargets(targets, known.outputs);
    return Handle.inOrder(
      this,
      (external) => this.#runNow(external, known, { inputs, targets, signal }),
      signal,
    );
  }

  async #runNow(external, known, { inputs, targets, signal }) {
    const values = inputs.map((input, i) => inputOf(input, i, known));
    const memory = targets.map((target, i) =>
      target ? Tensor.forAddon(target, `outputs[${i}]`).data : undefined,
    );
    const measures = !this.#measured.has(known.name);
    let timer;
    const cancel = () => {
      native.cancelRun(external);
      timer ??= setInterval(() => native.cancelRun(external), CANCEL_EVERY_MS);
    };
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const made = await settled(() =>
        native.run(external, known.name, values, memory, known.outputs.length, measures),
      );
      this.#measured.add(known.name);
      return made.map((output, i) => outputOf(output, targets[i]));
    } catch (error) {
      throw signal?.aborted && error.code === Code.CANCELLED ? signal.reason : error;
    } finally {
      clearInterval(timer);
      signal?.removeEventListener('abort', cancel);
    }
  }

  /** Loads a method, which otherwise its first run does. */
  async load(method = 'forward') {
    await command(this, 'load', { text: this.describe(method).name });
    this.#measured.add(method);
  }

  /** Frees a method, its memory and its own state. */
  async unload(method = 'forward') {
    await command(this, 'unload', { text: this.describe(method).name });
    this.#measured.delete(method);
  }

  /** The bytes of the methods that are loaded: {inUse, resident}. */
  async memory() {
    const { inUse, resident } = await command(this, 'memory');
    return { inUse: Number(inUse), resident: Number(resident) };
  }

  /** A module on the same program, with memory and state of its own. */
  async clone() {
    return new Module(OWN, await command(this, 'clone'), this.#methods, this.#threads);
  }

  /** A clone with the same methods loaded, and with the current state and seed. */
  async fork() {
    return new Module(OWN, await command(this, 'fork'), this.#methods, this.#threads);
  }

  /** All state of the methods that are loaded, for restore(). */
  async snapshot() {
    return new Uint8Array(await command(this, 'snapshot'));
  }

  /** Puts the state of a snapshot back. */
  async restore(snapshot) {
    await command(this, 'restore', { bytes: check.bytes(snapshot, 'snapshot') });
  }

  /** The state has its initial content again. */
  async resetState() {
    await command(this, 'resetState');
  }

  /** Copies of the state of the methods that are loaded. */
  async state() {
    const { states, buffer } = await command(this, 'states');
    return states.map(({ name, method, dtype: number, sizes, dimOrder, offset }) => {
      const dtype = dtypeName(number);
      const { array, parts } = dtypeOf(dtype);
      const count = sizes.reduce((all, size) => all * size, 1) * parts;
      const inOrder = stridesOf(dimOrder.map((k) => sizes[k]));
      const strides = sizes.map((_, k) => inOrder[dimOrder.indexOf(k)]);
      const data = new array(buffer, offset, count);
      return { name, method, tensor: new Tensor(data, sizes, { dtype, strides }) };
    });
  }

  /** Random operators draw as after torch.manual_seed(seed). */
  async seed(seed) {
    await command(this, 'seed', { first: check.whole64(seed, 'seed') });
  }

  /** Records loads and runs from now on, and forgets what was recorded. */
  async startTrace(options) {
    await command(this, 'startTrace', traceFields(options));
  }

  /** Records no more, and keeps what was recorded until the next start. */
  async stopTrace() {
    await command(this, 'stopTrace');
  }

  /** Writes the trace to a file (ETDump), and values to one with ".values" at its end. */
  async saveTrace(file) {
    await command(this, 'saveTrace', { text: check.path(file) });
  }

  /** The report of the last failure, for `rushlight explain`; null if there is none. */
  async failureReport() {
    const buffer = await command(this, 'failureReport');
    return buffer === undefined ? null : new Uint8Array(buffer);
  }
}

module.exports = { Module, sourceOf };
