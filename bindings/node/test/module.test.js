// Modules: outputs are Python's, errors are clear, calls keep their order.
'use strict';

const assert = require('node:assert/strict');
const { existsSync, readFileSync, statSync } = require('node:fs');
const { test } = require('node:test');
const { pathToFileURL } = require('node:url');
const { Code, Module, RushlightError, Tensor, version } = require('rushlight');
const {
  assertFails,
  assertOutputs,
  expected,
  floats,
  golden,
  made,
  valueOf,
} = require('./support.js');

const X = () => floats([1, 2, 3, 4, 5, 6], [2, 3]);

for (const [name, cases] of Object.entries(expected.programs)) {
  test(`outputs of ${name} are Python's`, async () => {
    const module = await Module.open(made(`${name}.pte`), { threads: 2 });
    for (const { method, inputs, outputs } of cases) {
      assertOutputs(await module.run(method, inputs.map(valueOf)), outputs);
    }
    // From memory, too, in the other order, on one thread.
    const other = await Module.open(readFileSync(made(`${name}.pte`)), { threads: 1 });
    for (const { method, inputs, outputs } of [...cases].reverse()) {
      assertOutputs(await other.run(method, inputs.map(valueOf)), outputs);
    }
    await Promise.all([module.close(), other.close()]);
  });
}

test('versions and sources', async () => {
  assert.match(version, /^\d+\.\d+/);
  const bytes = readFileSync(golden('add.pte'));
  const exact = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  const sources = [golden('add.pte'), pathToFileURL(golden('add.pte')), bytes, exact, shared];
  for (const source of sources) {
    const module = await Module.open(source);
    assert.deepEqual(module.methods, ['forward']);
    if (source !== shared) bytes.fill(0); // the module has a copy
    const [y] = await module.forward(X(), X());
    assert.deepEqual([...y.data], [2, 4, 6, 8, 10, 12]);
    await module.close();
    readFileSync(golden('add.pte')).copy(bytes);
  }
});

test('descriptions say what the contract says', async () => {
  const module = await Module.open(made('net_portable.pte'));
  const { inputs, outputs, relations, memory, instructions } = module.describe();
  assert.deepEqual(
    inputs.map((input) => [input.name, input.dtype, input.minSizes, input.maxSizes]),
    [
      ['x', 'float32', [2, 6], [9, 6]],
      ['mask', 'float32', [2], [9]],
    ],
  );
  assert.equal(inputs[0].symbols[0], inputs[1].symbols[0]);
  assert.ok(inputs[0].symbols[0] > 0 && inputs[0].symbols[1] === 0);
  assert.deepEqual(
    outputs.map((output) => output.dtype),
    ['float32', 'int64', 'bool', 'float16'],
  );
  assert.deepEqual(relations, ["size 0 of input 'mask' == size 0 of input 'x'"]);
  assert.equal(inputs[0].nbytes, 9 * 6 * 4);
  assert.ok(memory.arenas > 0 && instructions > 0);
  assert.throws(() => inputs.push(1), TypeError);
  await assertFails(Code.INVALID_ARGUMENT, /no method "backward": .* "forward"/, () =>
    module.describe('backward'),
  );
  const before = await module.memory();
  await module.load();
  const loaded = await module.memory();
  await module.unload('forward');
  assert.ok(before.inUse === 0 && loaded.inUse > 0 && (await module.memory()).inUse === 0);
  await module.close();
  const scalars = await Module.open(made('scalars.pte'));
  const [, n, flag] = scalars.describe().inputs;
  assert.deepEqual([n.kind, n.value, flag.kind], ['int', 2, 'bool']);
  assert.deepEqual([flag.value, flag.isFixed], [true, true]);
  await scalars.close();
});

test('wrong inputs are refused by their names', async () => {
  const module = await Module.open(made('net_cpu.pte'));
  const x = () => Tensor.zeros('float32', [4, 6]);
  const mask = () => Tensor.zeros('float32', [4]);
  const run =
    (...inputs) =>
    () =>
      module.run('forward', inputs);
  const { INVALID_ARGUMENT: WRONG, NOT_SUPPORTED } = Code;
  await assertFails(WRONG, /got 1 inputs, the method takes 2/, run(x()));
  await assertFails(
    NOT_SUPPORTED,
    /'x': size 0 is 1/,
    run(Tensor.zeros('float32', [1, 6]), mask()),
  );
  await assertFails(NOT_SUPPORTED, /'mask'.* must be 4/, run(x(), Tensor.zeros('float32', [3])));
  await assertFails(WRONG, /got float64.* float32/, run(Tensor.zeros('float64', [4, 6]), mask()));
  await assertFails(WRONG, /got a Double.* Tensor/, run(3, mask()));
  await assertFails(WRONG, /input 'mask' of forward is an Object: give a Tensor/, run(x(), {}));
  await assertFails(WRONG, /is a Float32Array: give a Tensor/, run(new Float32Array(3), mask()));
  await assertFails(
    WRONG,
    /is a function/,
    run(x(), () => 1),
  );
  await assertFails(WRONG, /more than 16/, run(Tensor.zeros('float32', Array(20).fill(0)), mask()));
  await assertFails(WRONG, /inputs is 5: give an array/, () => module.run('forward', 5));
  await assertFails(WRONG, /no method 5/, () => module.run(5, []));
  await assertFails(WRONG, /no method "forward\\u0000x"/, () => module.run('forward\0x', []));
  await assertFails(WRONG, /there is no output; there are signal, outputs/, () =>
    module.run('forward', [], { output: [] }),
  );
  await assertFails(WRONG, /signal is 5/, () => module.run('forward', [], { signal: 5 }));
  const outputs = await module.run('forward', [x(), mask()]);
  assert.deepEqual(outputs[0].sizes, [4, 5]);
  await module.close();
  const scalars = await Module.open(made('scalars.pte'));
  const ones = floats([1, 1, 1]);
  await assertFails(WRONG, /input 'n' is 2.5: give a whole number/, () =>
    scalars.forward(ones, 2.5, true, 'up'),
  );
  await assertFails(WRONG, /'n'/, () => scalars.forward(ones, 1n << 63n, true, 'up'));
  await assertFails(WRONG, /'flag'.* exported with another value/, () =>
    scalars.forward(ones, 2, false, 'up'),
  );
  await scalars.close();
});

test('tensors are checked when they are made', async () => {
  const WRONG = Code.INVALID_ARGUMENT;
  const fails = (pattern, ...values) => assertFails(WRONG, pattern, () => new Tensor(...values));
  await fails(/data has 5 elements, the sizes \[2,3\] need 6/, new Float32Array(5), [2, 3]);
  await fails(/sizes\[1\] is -3/, new Float32Array(6), [2, -3]);
  await fails(/sizes\[0\] is 2.5/, new Float32Array(6), [2.5]);
  await fails(/sizes is 6: give an array/, new Float32Array(6), 6);
  await fails(/data is an Array: give a typed array/, [1, 2], [2]);
  await fails(/float16 needs a Uint16Array/, new Float32Array(2), [2], { dtype: 'float16' });
  await fails(/there are uint8, int8/, new Float32Array(2), [2], { dtype: 'float8' });
  await fails(/there are uint8, int8/, new Float32Array(2), [2], { dtype: 'constructor' });
  await fails(/strides has 1 numbers/, new Float32Array(6), [2, 3], { strides: [1] });
  await fails(/strides\[0\] is -1/, new Float32Array(6), [2, 3], { strides: [-1, 1] });
  await fails(/elements, the sizes/, new Float32Array(6), [2, 3], { strides: [4, 1] });
  await assertFails(WRONG, /too many elements/, () => Tensor.zeros('int8', Array(9).fill(65536)));
  await assertFails(Code.MEMORY_ALLOCATION_FAILED, /memory/, () =>
    Tensor.zeros('int8', [2 ** 26, 2 ** 24]),
  );
  await assertFails(WRONG, /3 values for the sizes \[2\]/, () => Tensor.from([1, 2, 3], [2]));
  assert.deepEqual([...Tensor.from([1, 2], [2], 'int64').data], [1n, 2n]);
  assert.deepEqual([...Tensor.from([true, false], [2], 'bool').data], [1, 0]);
  assert.equal(new Tensor(new Uint16Array(1), []).dtype, 'uint16');
  assert.equal(new Tensor(Buffer.alloc(3), [3]).dtype, 'uint8');
});

test('arrays that lie about themselves are refused', async () => {
  class Liar extends Float32Array {
    get length() {
      return 2 ** 20;
    }
  }
  const module = await Module.open(made('large.pte'));
  const x = new Tensor(new Liar(4), [2 ** 20].fill(expected.slow), { strides: [1] });
  await assertFails(Code.INVALID_ARGUMENT, /bytes/, () => module.forward(x));
  const bytes = readFileSync(golden('add.pte'));
  Object.defineProperty(bytes, 'byteLength', { value: 2 ** 40 });
  await assert.rejects(Module.open(bytes), RangeError);
  assert.throws(() => new Tensor(new Proxy(new Float32Array(4), {}), [4]), TypeError);
  await module.close();
});

test('strides are read where they lie', async () => {
  const module = await Module.open(golden('add.pte'));
  const byColumns = new Tensor(Float32Array.of(1, 4, 2, 5, 3, 6), [2, 3], { strides: [1, 2] });
  const [y] = await module.forward(byColumns, X());
  assert.deepEqual([...y.data], [2, 4, 6, 8, 10, 12]);
  const repeated = new Tensor(Float32Array.of(7), [2, 3], { strides: [0, 0] });
  assert.deepEqual([...(await module.forward(repeated, X()))[0].data], [8, 9, 10, 11, 12, 13]);
  await module.close();
});

test('outputs are written in place', async () => {
  const module = await Module.open(golden('add.pte'));
  const own = Tensor.zeros('float32', [2, 3]);
  const shared = new Tensor(new Float32Array(new SharedArrayBuffer(24)), [2, 3]);
  for (const target of [own, shared]) {
    const [y] = await module.run('forward', [X(), X()], { outputs: [target] });
    assert.deepEqual([...target.data], [2, 4, 6, 8, 10, 12]);
    assert.equal(y.data.buffer, target.data.buffer);
    const [z] = await module.run('forward', [y, target], { outputs: [null] });
    assert.deepEqual([...z.data], [4, 8, 12, 16, 20, 24]);
    assert.deepEqual([...target.data], [2, 4, 6, 8, 10, 12]); // it is the caller's again
  }
  const run = (outputs) => () => module.run('forward', [X(), X()], { outputs });
  const WRONG = Code.INVALID_ARGUMENT;
  await assertFails(WRONG, /Tensor.zeros\(\) made, or lie in a SharedArrayBuffer/, run([X()]));
  await assertFails(WRONG, /at most 1 tensors/, run([own, own]));
  await assertFails(
    WRONG,
    /outputs\[0\] is a tensor of int32.* float32/,
    run([Tensor.zeros('int32', [6])]),
  );
  await assertFails(WRONG, /output 0.*20 bytes/, run([Tensor.zeros('float32', [5])]));
  await assertFails(WRONG, /outputs\[0\] is 3/, run([3]));
  assert.deepEqual([...(await run([own])())[0].data], [2, 4, 6, 8, 10, 12]);
  await module.close();
  const net = await Module.open(made('net_cpu.pte'));
  const room = Tensor.zeros('float32', [9, 5]);
  const inputs = [Tensor.zeros('float32', [3, 6]), Tensor.zeros('float32', [3])];
  const outputs = await net.run('forward', inputs, { outputs: [room] });
  assert.deepEqual(outputs[0].sizes, [3, 5]);
  assert.equal(outputs[0].data.buffer, room.data.buffer);
  assert.deepEqual([...(await net.run('forward', inputs))[0].data], [...outputs[0].data]);
  await net.close();
});

test('state is kept, copied and put back', async () => {
  const module = await Module.open(golden('counter.pte'));
  const count = async (one) => (await one.forward(floats([1, 1])))[0].data[0];
  const first = await count(module);
  const saved = await module.snapshot();
  const second = await count(module);
  assert.notEqual(first, second);
  const [state] = await module.state();
  const before = state.tensor.data[0];
  const fork = await module.fork();
  const clone = await module.clone();
  await module.restore(saved);
  assert.ok((await module.state())[0].tensor.data[0] < before && state.tensor.data[0] === before);
  assert.equal(await count(module), second);
  assert.equal(await count(clone), first);
  assert.notEqual(await count(fork), second);
  await module.resetState();
  assert.equal(await count(module), first);
  await assertFails(Code.INVALID_ARGUMENT, /./, () => module.restore(Buffer.alloc(3)));
  await assertFails(Code.INVALID_ARGUMENT, /snapshot is 3/, () => module.restore(3));
  await module.close();
  assert.ok((await count(clone)) > first); // copies live on
  await Promise.all([fork.close(), clone.close()]);
});

test('kernels and backends of shared libraries', async () => {
  const { twice, scale } = expected.libraries;
  const module = await Module.open(made('twice.pte'), { kernels: [twice] });
  assert.deepEqual([...(await module.forward(X()))[0].data], [2, 4, 6, 8, 10, 12]);
  const fork = await module.fork();
  await module.close();
  assert.deepEqual([...(await fork.forward(X()))[0].data], [2, 4, 6, 8, 10, 12]);
  await fork.close();
  const bare = await Module.open(made('twice.pte'));
  await assertFails(Code.OPERATOR_MISSING, /acme::twice.out/, () => bare.forward(X()));
  await bare.close();
  const scaled = await Module.open(made('scaled.pte'), { backends: [pathToFileURL(scale)] });
  assert.deepEqual([...(await scaled.forward(floats([1, 2])))[0].data], [3, 6]);
  await assert.rejects(scaled.forward(floats([-1, 2])), (error) => {
    assert.deepEqual([error.instruction, error.delegate], [0, 0]);
    return /an element is negative/.test(error.message);
  });
  await scaled.close();
  const open = (options) => () => Module.open(made('twice.pte'), options);
  await assertFails(
    Code.ACCESS_FAILED,
    /none.so.*cannot be loaded/,
    open({ kernels: ['/none.so'] }),
  );
  await assertFails(Code.INVALID_ARGUMENT, /kernels is "a"/, open({ kernels: 'a' }));
  await assertFails(Code.INVALID_ARGUMENT, /kernels\[0\] is 1/, open({ kernels: [1] }));
  const again = await open({ kernels: [twice, twice] })(); // one library, one registration
  assert.deepEqual([...(await again.forward(X()))[0].data], [2, 4, 6, 8, 10, 12]);
  await again.close();
});

test('libraries of kernels that are refused, or fail', async () => {
  // Each line of the table has a part of the error, and libraries.
  const cases = readFileSync(made('bad_kernels.tsv'), 'utf8').trimEnd().split('\n');
  assert.ok(cases.length >= 7);
  const run = async (kernels) => {
    const module = await Module.open(made('twice.pte'), { kernels });
    try {
      return [...(await module.forward(X()))[0].data];
    } finally {
      await module.close();
    }
  };
  for (const line of cases) {
    const [part, libraries] = line.split('\t');
    const kernels = libraries.split(';').filter((path) => path !== '');
    await assert.rejects(run(kernels), (error) => {
      assert.ok(error instanceof RushlightError && error.message.includes(part), error);
      return true;
    });
  }
  assert.deepEqual(await run([expected.libraries.twice]), [2, 4, 6, 8, 10, 12]);
});

test('traces and reports of failures', async () => {
  const module = await Module.open(made('net_cpu.pte'), { reportsFailures: true });
  assert.equal(await module.failureReport(), null);
  await assertFails(Code.INVALID_STATE, /./, () => module.saveTrace(made('none.etdump')));
  await module.startTrace({ values: 'outputs' });
  await module.forward(Tensor.zeros('float32', [3, 6]), Tensor.zeros('float32', [3]));
  await module.stopTrace();
  await module.saveTrace(made('node.etdump'));
  assert.ok(statSync(made('node.etdump')).size > 100 && existsSync(made('node.etdump.values')));
  await assertFails(Code.ACCESS_FAILED, /./, () => module.saveTrace(made('no/such/folder')));
  await assertFails(Code.INVALID_ARGUMENT, /values is "some"/, () =>
    module.startTrace({ values: 'some' }),
  );
  await assertFails(Code.INVALID_ARGUMENT, /got 0 inputs/, () => module.forward());
  assert.ok((await module.failureReport()).length > 20);
  await module.close();
});

test('damaged programs and wrong options are refused', async () => {
  const bytes = readFileSync(golden('add.pte'));
  await assertFails(Code.ACCESS_FAILED, /no\/file: no such file/, () => Module.open('no/file'));
  await assertFails(Code.INVALID_PROGRAM, /./, () => Module.open(bytes.subarray(0, 40)));
  await assertFails(Code.INVALID_PROGRAM, /./, () => Module.open(Buffer.alloc(0)));
  await assertFails(Code.INVALID_ARGUMENT, /source is 7/, () => Module.open(7));
  await assertFails(Code.INVALID_ARGUMENT, /path has a NUL/, () => Module.open('a\0b'));
  const open = (options) => () => Module.open(golden('add.pte'), options);
  await assertFails(Code.INVALID_ARGUMENT, /threads is -1/, open({ threads: -1 }));
  await assertFails(Code.INVALID_ARGUMENT, /memoryLimit is -1n/, open({ memoryLimit: -1n }));
  await assertFails(
    Code.INVALID_ARGUMENT,
    /there is no thread; there are threads/,
    open({ thread: 1 }),
  );
  await assertFails(Code.INVALID_ARGUMENT, /options is 3/, open(3));
  const small = await Module.open(golden('add.pte'), { memoryLimit: 1000 });
  await assertFails(Code.OUT_OF_RESOURCES, /./, () => small.forward(X(), X()));
  await small.close();
  for (let at = 0; at < bytes.length; at += 7) {
    const damaged = Buffer.from(bytes);
    damaged[at] ^= 0xff;
    try {
      const module = await Module.open(damaged, { memoryLimit: 2 ** 26 });
      await module.forward(X(), X()).catch((error) => assert.ok(error instanceof RushlightError));
      await module.close();
    } catch (error) {
      assert.ok(error instanceof RushlightError, String(error));
    }
  }
});

test('a closed module, and what is no module, are refused', async () => {
  const module = await Module.open(golden('add.pte'));
  const last = module.forward(X(), X());
  const closing = module.close();
  await assertFails(Code.INVALID_STATE, /the Module is closed/, () => module.forward(X(), X()));
  assert.equal((await last)[0].data[5], 12); // what was asked before is done
  await closing;
  await module.close();
  for (const call of ['snapshot', 'fork', 'memory', 'state', 'resetState']) {
    await assertFails(Code.INVALID_STATE, /closed/, () => module[call]());
  }
  await assertFails(Code.INVALID_ARGUMENT, /see its open/, () => new Module());
  await assert.rejects(async () => Module.prototype.run.call({}, 'forward', []), TypeError);
  await assert.rejects(async () => Module.prototype.close.call({}), TypeError);
});

test('calls at once are done in their order', async () => {
  const module = await Module.open(golden('counter.pte'));
  const runs = Array.from({ length: 40 }, () => module.forward(floats([1, 1])));
  const counts = (await Promise.all(runs)).map(([y]) => y.data[0]);
  assert.deepEqual(
    counts,
    counts.map((_, i) => counts[0] + i * (counts[1] - counts[0])),
  );
  const [, saved, , last] = await Promise.all([
    module.resetState(),
    module.snapshot(),
    module.forward(floats([1, 1])),
    module.forward(floats([1, 1])),
  ]);
  await module.restore(saved);
  assert.deepEqual(
    [counts[0], counts[1]],
    [(await module.forward(floats([1, 1])))[0].data[0], last[0].data[0]],
  );
  await module.close();
});

test('runs are cancelled by a signal', async () => {
  const module = await Module.open(made('slow.pte'));
  const x = Tensor.zeros('float32', [expected.slow]);
  const controller = new AbortController();
  const run = module.run('forward', [x], { signal: controller.signal });
  const waiting = new AbortController();
  const queued = module.run('forward', [x], { signal: waiting.signal });
  setTimeout(() => controller.abort(), 30);
  waiting.abort(new Error('mine'));
  await assert.rejects(queued, /mine/);
  await assert.rejects(run, { name: 'AbortError' });
  await assert.rejects(module.run('forward', [x], { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  await assert.rejects(module.run('forward', [x], { signal: AbortSignal.timeout(20) }), {
    name: 'TimeoutError',
  });
  const late = new AbortController();
  const [y] = await module.run('forward', [x], { signal: late.signal });
  late.abort(); // too late: nothing happens
  assert.equal(y.data[0], 0);
  assert.equal((await module.forward(x))[0].data[0], 0);
  await module.close();
});
